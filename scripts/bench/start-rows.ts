import { builtServer } from '../../test/harness/built-server.ts';
import type { IsolatedHome } from '../../test/harness/isolated-home.ts';
import { interleaved, median, ratio, round } from './measure.ts';
import type { PeerCommand } from './peers.ts';
import type { Peer, Row } from './row.ts';
import { startToEnd, startToList } from './stdio-start.ts';

const OURS = 'claude-code-mcp';
const BARE = 'node -e 0';

/** All run in the same environment, so that what Node reads from it (certificates, options) costs all of them the same. */
export async function startRows(
  rounds: number,
  home: IsolatedHome,
  candidates: readonly PeerCommand[],
): Promise<{ rows: Row[]; peers: Peer[] }> {
  const place = { cwd: home.project, env: home.env() };
  const peers = await startablePeers(candidates, place);
  const bytes = new Map<string, number>();
  const listing =
    (name: string, file: string, args: readonly string[], opening?: PeerCommand['opening']) => async () => {
      const start = await startToList({ file, args, ...place, ...(opening && { opening }) });
      bytes.set(name, start.bytes);
      return start.ms;
    };
  const times: Record<string, number[]> = await interleaved<string>(rounds, {
    [BARE]: () => startToEnd({ file: process.execPath, args: ['-e', '0'], ...place }),
    [OURS]: listing(OURS, process.execPath, [builtServer()]),
    ...Object.fromEntries(peers.map(({ name, file, args, opening }) => [name, listing(name, file, args, opening)])),
  });
  const ours = times[OURS] ?? [];
  const bare = times[BARE] ?? [];
  const overBare = ratio(ours, bare);
  const native = peers.find(({ isNative }) => isNative);
  const nativeTimes = native && (times[native.name] ?? []);
  const overNative = nativeTimes && ratio(ours, nativeTimes);
  const notes = new Map(peers.map(({ name, note }) => [name, note]));
  return {
    rows: [
      {
        what: 'start of the process to the answer of tools/list',
        target: 'at most 2.0 × bare `node -e 0`',
        measured: `${overBare.toFixed(2)} × (${round(median(ours))} ms, bare ${round(median(bare))} ms)`,
        reached: overBare <= 2,
        numbers: { ratio: round(overBare, 3), ms: round(median(ours), 1), bareMs: round(median(bare), 1) },
      },
      ...(overNative === undefined || !nativeTimes
        ? []
        : [
            {
              what: 'the same, against the native codex server',
              target: 'below it',
              measured: `${overNative.toFixed(2)} × (${round(median(nativeTimes))} ms)`,
              reached: overNative < 1,
              numbers: { ratio: round(overNative, 3), nativeMs: round(median(nativeTimes), 1) },
            },
          ]),
    ],
    peers: Object.entries(times).map(([name, ms]) => ({
      name,
      startMs: round(median(ms), 1),
      listBytes: notes.get(name)?.startsWith('ACP') === true ? undefined : bytes.get(name),
      note: notes.get(name) ?? '',
    })),
  };
}

/** A peer that does not start here is reported and left out, so that the others' figures are not lost. */
async function startablePeers(
  candidates: readonly PeerCommand[],
  place: { cwd: string; env: Record<string, string> },
): Promise<PeerCommand[]> {
  const started: PeerCommand[] = [];
  for (const peer of candidates) {
    try {
      await startToList({ ...peer, ...place });
      started.push(peer);
    } catch (error) {
      console.error(`not measured: ${peer.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return started;
}
