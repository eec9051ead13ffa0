/*
 * The commands that a rule may leave open at the end (`git log *`). A closed table: a program, an option or an argument
 * that is not listed matches nothing. None of those listed starts another program, writes a file or uses the network,
 * whatever its arguments are, and every path that it is given is checked. Long options count as written out: programs
 * accept `--outp=x` too, this table does not.
 */

/**
 * `path`: inside the session's directories. `size`: a number with a unit. `format`, `ref order`: nothing that makes git run
 * gpg. `text`: anything.
 */
export type Kind = 'text' | 'path' | 'number' | 'size' | 'format' | 'ref order';

export interface OpenCommand {
  /** The program and the words that belong to it. */
  readonly words: readonly string[];
  /** Letters of short options without a value, which may be combined: `-la`. */
  readonly flags?: string;
  readonly long?: readonly string[];
  /** Options with a value: `-n3`, `-n 3`, `--lines=3`, `--lines 3`. */
  readonly values?: Readonly<Record<string, Kind>>;
  /** Long options with a value that only counts after `=`. */
  readonly attached?: Readonly<Record<string, Kind>>;
  /** `-name` is one option, not five letters. */
  readonly singleDash?: true;
  /**
   * Reads its arguments in its own way: `-Io x y` of tree is `-I x -o y`, and `find -- -delete` deletes. So no value is
   * attached to a letter, and nothing follows `--`.
   */
  readonly ownParser?: true;
  /** `-3` is a number of lines or commits. */
  readonly digits?: true;
  /** What the first argument is; all others are paths. */
  readonly first?: 'text' | RegExp;
  /** With one of these options, the first argument is a path too. */
  readonly firstIsPathWith?: readonly string[];
  /** How many arguments there may be. Options have to come before them: not every system looks for options there. */
  readonly most?: number;
  /** Why it is harmless, and which options are left out on purpose. */
  readonly reason: string;
}

/** What `git log`, `show` and `diff` have in common. */
const GIT_OUTPUT = {
  flags: 'bipqsuwz',
  long: (
    '--oneline --graph --stat --shortstat --numstat --name-only --name-status --all --branches --tags --remotes --merges ' +
    '--no-merges --first-parent --follow --reverse --patch --no-patch --summary --decorate --no-decorate --abbrev-commit ' +
    '--no-color --cached --staged --word-diff --check --raw --minimal --patience --histogram --ignore-all-space ' +
    '--ignore-space-change --ignore-blank-lines --no-ext-diff --no-textconv --no-renames --exit-code --quiet --date-order ' +
    '--topo-order --full-history'
  ).split(' '),
  values: { '-n': 'number', '-S': 'text', '-G': 'text', '-L': 'text' },
  attached: {
    '--abbrev': 'number',
    '--after': 'text',
    '--author': 'text',
    '--before': 'text',
    '--color': 'text',
    '--committer': 'text',
    '--date': 'text',
    '--decorate': 'text',
    '--diff-filter': 'text',
    '--format': 'format',
    '--grep': 'text',
    '--max-count': 'number',
    '--pretty': 'format',
    '--since': 'text',
    '--skip': 'number',
    '--stat': 'text',
    '--unified': 'number',
    '--until': 'text',
    '--word-diff': 'text',
  },
  digits: true,
} as const satisfies Partial<OpenCommand>;

const GIT_OUTPUT_REASON =
  'Reads objects and files of the repository. Left out: --output (writes), --ext-diff, --textconv and --show-signature (run programs), --no-index and -O (read other files), %G in formats (runs gpg).';

const CHECKSUM = { flags: 'bt', reason: 'Prints a checksum. Left out: -c, which reads the files that a list names.' };

const SEARCH_VALUES = {
  '-e': 'text',
  '-f': 'path',
  '-m': 'number',
  '-A': 'number',
  '-B': 'number',
  '-C': 'number',
} as const;

export const OPEN_COMMANDS: readonly OpenCommand[] = [
  { words: ['cat'], flags: 'AbEensTtuv', reason: 'Prints files.' },
  {
    words: ['head'],
    flags: 'qv',
    values: { '-n': 'size', '-c': 'size', '--lines': 'size', '--bytes': 'size' },
    digits: true,
    reason: 'Prints the beginning of files.',
  },
  {
    words: ['tail'],
    flags: 'qv',
    values: { '-n': 'size', '-c': 'size', '--lines': 'size', '--bytes': 'size' },
    digits: true,
    reason: 'Prints the end of files. Left out: -f, which never ends.',
  },
  {
    words: ['wc'],
    flags: 'clmwL',
    long: ['--lines', '--words', '--chars', '--bytes'],
    reason: 'Counts. Left out: --files0-from, which reads the files that a list names.',
  },
  { words: ['nl'], flags: 'p', values: { '-b': 'text', '-w': 'number' }, reason: 'Prints files with line numbers.' },
  {
    words: ['ls'],
    flags: '1aABcCdFghiklmnopQrRsStuUvxX',
    long: ['--all', '--almost-all', '--human-readable', '--recursive', '--reverse', '--directory', '--size', '--inode'],
    attached: { '--color': 'text', '--sort': 'text', '--time': 'text' },
    reason: 'Lists names. Left out: -L and -H, which follow links.',
  },
  {
    words: ['tree'],
    ownParser: true,
    flags: 'aCdDfhins',
    values: { '-L': 'number', '-I': 'text', '-P': 'text' },
    reason: 'Lists names. Left out: -o and -R (write), -l (follows links), --fromfile.',
  },
  {
    words: ['find'],
    singleDash: true,
    ownParser: true,
    long: ['-empty', '-print', '-print0', '-not', '-o', '-a', '-or', '-and', '-prune', '-readable', '-executable'],
    values: {
      '-name': 'text',
      '-iname': 'text',
      '-path': 'text',
      '-ipath': 'text',
      '-type': 'text',
      '-maxdepth': 'number',
      '-mindepth': 'number',
      '-size': 'text',
      '-mtime': 'text',
      '-mmin': 'text',
      '-newer': 'path',
    },
    reason: 'Lists names. Left out: -exec, -ok, -delete, -fprint, -files0-from, -L.',
  },
  {
    words: ['grep'],
    flags: 'abcEFGhHiIlLnoPqrsTvwx',
    long: (
      '--line-number --ignore-case --recursive --files-with-matches --files-without-match --count --word-regexp ' +
      '--invert-match --fixed-strings --extended-regexp --perl-regexp --only-matching --no-messages --with-filename ' +
      '--no-filename --quiet --line-regexp'
    ).split(' '),
    values: SEARCH_VALUES,
    attached: {
      '--include': 'text',
      '--exclude': 'text',
      '--exclude-dir': 'text',
      '--color': 'text',
      '--regexp': 'text',
      '--file': 'path',
      '--max-count': 'number',
      '--context': 'number',
    },
    digits: true,
    first: 'text',
    firstIsPathWith: ['-e', '-f', '--regexp', '--file'],
    reason: 'Searches files. Left out: -R and --dereference-recursive (follow links), -z.',
  },
  {
    words: ['rg', '--files'],
    flags: 'u.0',
    long: ['--hidden', '--no-ignore', '--null'],
    values: { '-g': 'text', '-t': 'text', '-T': 'text' },
    attached: { '--glob': 'text', '--iglob': 'text', '--type': 'text', '--sort': 'text', '--max-depth': 'number' },
    reason: 'Lists names. Left out: --pre, --hostname-bin and -z (run programs), -L (follows links), --ignore-file.',
  },
  {
    words: ['rg'],
    flags: '.0acFHiIlnNopPqsSuUvwx',
    long: (
      '--hidden --no-ignore --line-number --no-line-number --files-with-matches --files-without-match --count ' +
      '--count-matches --multiline --fixed-strings --ignore-case --smart-case --case-sensitive --word-regexp ' +
      '--invert-match --only-matching --no-heading --heading --column --vimgrep --trim --json --stats --pcre2 --quiet'
    ).split(' '),
    values: { ...SEARCH_VALUES, '-g': 'text', '-t': 'text', '-T': 'text', '-M': 'number', '-r': 'text' },
    attached: {
      '--glob': 'text',
      '--iglob': 'text',
      '--type': 'text',
      '--type-not': 'text',
      '--sort': 'text',
      '--color': 'text',
      '--max-count': 'number',
      '--max-depth': 'number',
      '--max-columns': 'number',
      '--context': 'number',
      '--after-context': 'number',
      '--before-context': 'number',
      '--regexp': 'text',
      '--file': 'path',
      '--replace': 'text',
    },
    first: 'text',
    firstIsPathWith: ['-e', '-f', '--regexp', '--file'],
    reason:
      'Searches files. Left out: --pre, --pre-glob, --hostname-bin and -z (run programs), -L (follows links), --ignore-file, --type-add, --files (listed apart).',
  },
  {
    words: ['sort'],
    flags: 'bcCdfghiMmnrRsuVz',
    values: { '-k': 'text', '-t': 'text' },
    long: ['--numeric-sort', '--reverse', '--unique', '--ignore-case', '--human-numeric-sort', '--version-sort'],
    reason: 'Sorts lines. Left out: -o (writes), --compress-program (runs a program), -T, --files0-from.',
  },
  {
    words: ['uniq'],
    flags: 'cdDiuz',
    values: { '-f': 'number', '-s': 'number', '-w': 'number' },
    most: 1,
    reason: 'Drops repeated lines. A second argument would be a file that it writes.',
  },
  {
    words: ['cut'],
    flags: 'snz',
    values: { '-b': 'text', '-c': 'text', '-d': 'text', '-f': 'text' },
    reason: 'Prints columns.',
  },
  {
    words: ['sed', '-n'],
    first: /^\d+(?:,(?:\d+|\$))?p$/,
    reason: 'Prints lines by their numbers. Any other script may write files or run programs.',
  },
  {
    words: ['du'],
    flags: 'abchkmsSx',
    values: { '-d': 'number' },
    attached: { '--max-depth': 'number', '--exclude': 'text' },
    reason: 'Prints sizes. Left out: -L, -D and -H (follow links), -X and --files0-from (read lists).',
  },
  {
    words: ['file'],
    flags: 'bi',
    long: ['--brief', '--mime', '--mime-type'],
    reason: 'Names the type of files. Left out: -z (runs programs), -C (writes), -m, -f, -s.',
  },
  { words: ['md5sum'], ...CHECKSUM },
  { words: ['sha1sum'], ...CHECKSUM },
  { words: ['sha256sum'], ...CHECKSUM },

  { words: ['git', 'log'], ...GIT_OUTPUT, reason: GIT_OUTPUT_REASON },
  { words: ['git', 'show'], ...GIT_OUTPUT, reason: GIT_OUTPUT_REASON },
  { words: ['git', 'diff'], ...GIT_OUTPUT, reason: GIT_OUTPUT_REASON },
  {
    words: ['git', 'rev-list'],
    ...GIT_OUTPUT,
    long: [...GIT_OUTPUT.long, '--count', '--parents', '--left-right', '--objects'],
    reason: GIT_OUTPUT_REASON,
  },
  {
    words: ['git', 'status'],
    flags: 'bsz',
    long: ['--short', '--branch', '--porcelain', '--ignored', '--long', '--show-stash', '--no-renames'],
    attached: { '--porcelain': 'text', '--untracked-files': 'text', '--ignored': 'text' },
    reason: 'Compares the working tree with the index.',
  },
  {
    words: ['git', 'blame'],
    flags: 'bcCefklMnpstw',
    values: { '-L': 'text' },
    long: ['--porcelain', '--line-porcelain', '--show-email', '--show-name', '--show-number', '--root'],
    attached: { '--since': 'text', '--date': 'text', '--abbrev': 'number' },
    reason: 'Reads history. Left out: --contents, -S and --ignore-revs-file, which read other files.',
  },
  {
    words: ['git', 'shortlog'],
    flags: 'cens',
    long: ['--summary', '--numbered', '--email', '--all', '--no-merges'],
    attached: { '--since': 'text', '--until': 'text' },
    reason: 'Counts commits by author.',
  },
  {
    words: ['git', 'grep'],
    flags: 'acEFGhHiIlLnoPqvWw',
    long: [
      '--line-number',
      '--ignore-case',
      '--count',
      '--name-only',
      '--cached',
      '--untracked',
      '--heading',
      '--break',
    ],
    values: { '-e': 'text', '-A': 'number', '-B': 'number', '-C': 'number' },
    attached: { '--max-depth': 'number' },
    first: 'text',
    firstIsPathWith: ['-e'],
    reason: 'Searches tracked files. Left out: -O (runs a pager), -f, --no-index, --textconv.',
  },
  {
    words: ['git', 'ls-files'],
    flags: 'cdkmostuvz',
    long: [
      '--cached',
      '--deleted',
      '--modified',
      '--others',
      '--stage',
      '--unmerged',
      '--exclude-standard',
      '--full-name',
    ],
    reason: 'Lists names. Left out: -X and --exclude-from (read other files), --recurse-submodules.',
  },
  {
    words: ['git', 'ls-tree'],
    flags: 'dlrtz',
    long: ['--name-only', '--name-status', '--full-name', '--full-tree', '--long', '--object-only'],
    reason: 'Lists names in a commit.',
  },
  {
    words: ['git', 'rev-parse'],
    flags: 'q',
    long: (
      '--verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup ' +
      '--is-inside-work-tree --is-bare-repository --git-dir --git-common-dir --all --branches --tags'
    ).split(' '),
    attached: { '--short': 'number' },
    reason: 'Prints names of commits and places.',
  },
  {
    words: ['git', 'merge-base'],
    flags: 'a',
    long: ['--all', '--octopus', '--is-ancestor', '--fork-point'],
    reason: 'Prints the name of a commit.',
  },
  {
    words: ['git', 'describe'],
    long: ['--tags', '--all', '--always', '--long', '--contains', '--dirty', '--exact-match', '--first-parent'],
    attached: { '--abbrev': 'number', '--match': 'text', '--exclude': 'text' },
    reason: 'Prints the name of a commit.',
  },
  {
    words: ['git', 'cat-file'],
    flags: 'epst',
    reason: 'Prints an object. Left out: --textconv and --filters, which run programs.',
  },
  {
    words: ['git', 'show-ref'],
    flags: 'dhqs',
    long: ['--heads', '--tags', '--branches', '--verify'],
    reason: 'Lists refs.',
  },
  {
    words: ['git', 'branch', '--list'],
    flags: 'aivr',
    long: ['--all', '--remotes', '--verbose', '--no-color', '--merged', '--no-merged', '--contains'],
    attached: { '--sort': 'ref order' },
    reason:
      'Lists branches: with --list no name is created. Left out: -d, -D, -m, -f, -u, --edit-description, --format, and --sort by what runs gpg.',
  },
  { words: ['git', 'branch', '--show-current'], most: 0, reason: 'Prints the name of the branch.' },
  {
    words: ['git', 'tag', '--list'],
    flags: 'i',
    long: ['--merged', '--no-merged', '--contains', '--points-at'],
    attached: { '--sort': 'ref order' },
    reason:
      'Lists tags: with --list no name is created. Left out: -d, -a, -s, -v (runs gpg), --format, and --sort by what runs gpg.',
  },
  { words: ['git', 'remote', '-v'], most: 0, reason: 'Lists remotes. An argument could be a command (update, prune).' },
  { words: ['git', 'stash', 'list'], most: 0, reason: 'Lists stashes.' },
  { words: ['git', 'worktree', 'list'], long: ['--porcelain'], flags: 'v', most: 0, reason: 'Lists worktrees.' },
  { words: ['git', 'reflog', 'show'], ...GIT_OUTPUT, reason: 'Lists where refs were. Left out: expire and delete.' },
];

/** The entry for a command that begins with these words; of several, the one that names most of them. */
export function openCommand(words: readonly string[]): OpenCommand | undefined {
  return (BY_PROGRAM.get(words[0] ?? '') ?? []).find((entry) => entry.words.every((word, at) => words[at] === word));
}

const BY_PROGRAM: ReadonlyMap<string, readonly OpenCommand[]> = new Map(
  [...new Set(OPEN_COMMANDS.map(({ words }) => words[0] ?? ''))].map((program) => [
    program,
    OPEN_COMMANDS.filter(({ words }) => words[0] === program).sort((a, b) => b.words.length - a.words.length),
  ]),
);
