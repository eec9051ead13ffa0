import { Keeper } from '../keeper/keeper.ts';

/** `keeper.mjs <state directory> <socket>`, started by a hub or its service manager. */
const [stateDir = '', socket = ''] = process.argv.slice(2);
const keeper = new Keeper({ stateDir, socket });
// What ends a terminal or a hub does not end the keeper; a service manager that stops it means it.
process.on('SIGHUP', () => undefined);
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => void keeper.end());
process.on('uncaughtException', (error) =>
  keeper.warn(`the keeper met an unexpected error: ${error.stack ?? error.message}`),
);
await keeper.listen();
