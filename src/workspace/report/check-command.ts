/** Recognises a test run, build, lint or type check in a command line. Reads the line; runs and expands nothing. */

/** Programs whose every use is a check. */
const CHECKERS = new Set(
  `pytest py.test nosetests nose2 tox nox unittest mypy pyright basedpyright pylint flake8 ruff pyflakes bandit
  jest vitest mocha ava jasmine karma cypress tsc vue-tsc svelte-check eslint oxlint tslint stylelint standard xo biome
  tsd attw publint knip markdownlint golangci-lint staticcheck gotestsum rspec rubocop minitest phpunit pest phpstan psalm
  shellcheck hadolint yamllint actionlint ctest bats clang-tidy cppcheck ktlint detekt swiftlint credo dialyzer busted
  tsdown tsup esbuild rollup webpack ninja scons bazelisk buck2 pre-commit lint-staged`.split(/\s+/),
);

/** Programs that do many things: which of their arguments make it a check. */
const WORDS =
  'test|tests|check|checks|lint|build|compile|typecheck|type-check|types|verify|ci|vet|clippy|e2e|spec|coverage';
const SUBCOMMANDS: Readonly<Record<string, RegExp>> = {
  go: /^(test|build|vet)$/,
  cargo: /^(test|t|build|b|check|c|clippy|nextest|bench)$/,
  dotnet: /^(test|build)$/,
  swift: /^(test|build)$/,
  zig: /^(test|build)$/,
  mix: /^(test|compile|credo|dialyzer)$/,
  deno: /^(test|check|lint)$/,
  bazel: /^(test|build)$/,
  mvn: /^(test|verify|package|compile|install)$/,
  gradle: /^(.*[tT]est|check|build|assemble|lint.*)$/,
  rake: new RegExp(`^(${WORDS})\\b`),
  make: new RegExp(`^(${WORDS}|all)([-_:].*)?$`),
  just: new RegExp(`^(${WORDS})([-_:].*)?$`),
  task: new RegExp(`^(${WORDS})([-_:].*)?$`),
  stack: /^(test|build)$/,
  cabal: /^(test|build|check)$/,
  flutter: /^(test|analyze|build)$/,
  dart: /^(test|analyze|compile)$/,
  terraform: /^(validate|plan)$/,
  docker: /^build$/,
  nx: new RegExp(`^(${WORDS}|run-many|affected)$`),
  turbo: new RegExp(`^(${WORDS})$`),
  next: /^(build|lint)$/,
  vite: /^build$/,
  astro: /^(build|check)$/,
  ng: /^(test|build|lint|e2e)$/,
  playwright: /^test$/,
  prettier: /^(--check|-c|--list-different|-l)$/,
  black: /^--check$/,
  isort: /^(--check|--check-only|-c)$/,
  gofmt: /^-l$/,
  rustfmt: /^--check$/,
  cmake: /^--build$/,
  git: /^$/,
};
const SCRIPT = new RegExp(`^(${WORDS})([-_:./].*)?$`);
const PACKAGE_MANAGERS = new Set(['npm', 'pnpm', 'yarn', 'bun']);
/** Options of package managers that take an argument. */
const WITH_VALUE = new Set([
  '-C',
  '--dir',
  '--prefix',
  '--filter',
  '-F',
  '--cwd',
  '--workspace',
  '-w',
  '--manifest-path',
  '-p',
  '--package',
  '-f',
]);
const ALIASES: Readonly<Record<string, string>> = {
  gmake: 'make',
  mvnw: 'mvn',
  gradlew: 'gradle',
  'docker-compose': 'docker',
};

/** Prefixes that are not the program itself; how many of the following words belong to them. */
const WRAPPERS: Readonly<Record<string, number>> = {
  time: 0, command: 0, exec: 0, sudo: 0, env: 0, nice: 0, nohup: 0, npx: 0, bunx: 0, uvx: 0, xvfb: 0, 'xvfb-run': 0, stdbuf: 0,
  caffeinate: 0, then: 0, do: 0, '!': 0, '{': 0, '(': 0, if: 0, while: 0, else: 0, timeout: 1, gtimeout: 1, pipx: 1,
}; // prettier-ignore

/** Their options that take an argument. */
const WRAPPER_WITH_VALUE = /^(-[nksuCw]|--package|--signal|--user|--chdir)$/;

/** Programs that run another one after one of their own words: `poetry run pytest`, `pnpm exec tsc`. */
const RUNNERS: Readonly<Record<string, RegExp>> = {
  poetry: /^run$/, uv: /^run$/, pdm: /^run$/, hatch: /^run$/, rye: /^run$/, pipenv: /^run$/, conda: /^run$/, bundle: /^exec$/,
  npm: /^(exec|x)$/, pnpm: /^(exec|dlx)$/, yarn: /^(exec|dlx)$/, bun: /^x$/, mise: /^(exec|x)$/, nix: /^develop$/, direnv: /^exec$/,
}; // prettier-ignore

/** The part of the line that is a check, as written; undefined if there is none. The last one counts. */
export function checkIn(line: string): string | undefined {
  const check = commandsIn(line)
    .filter(({ words }) => isCheck(words))
    .at(-1);
  return check && withoutGrouping(check.text);
}

/** Whether the line asks git for a commit. */
export function commits(line: string): boolean {
  return commandsIn(line).some(({ words }) => {
    const [first = '', ...args] = withoutPrefixes(words);
    const inner = argumentOf(nameOf(first), first, args);
    if (typeof inner === 'string') return commits(inner);
    return nameOf(first) === 'git' && gitCommand(args) === 'commit' && !args.includes('--dry-run');
  });
}

/** The command among the arguments of git, after its own options. */
function gitCommand(args: readonly string[]): string | undefined {
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? '';
    if (/^(-C|-c|--git-dir|--work-tree|--namespace|--exec-path)$/.test(arg)) index++;
    else if (!arg.startsWith('-')) return arg;
  }
  return undefined;
}

/** Of `if make test` and `(cd a; pytest)` only the command. */
function withoutGrouping(text: string): string {
  let command = text.replace(/^((if|then|while|until|else|do)\s+|[({!]\s*)+/, '');
  const count = (bracket: string): number => command.split(bracket).length - 1;
  while (command.endsWith(')') && count(')') > count('(')) command = command.slice(0, -1).trimEnd();
  return command;
}

export interface SimpleCommand {
  readonly text: string;
  readonly words: readonly string[];
}

/** Splits at `&&`, `||`, `;`, `|`, `&` and line ends outside quotes. Here-document text is not a command. */
function commandsIn(line: string): SimpleCommand[] {
  const commands: SimpleCommand[] = [];
  let words: string[] = [];
  let word: string | undefined;
  let begin = 0;
  let endMarks: string[] = [];
  const endWord = (): void => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = (end: number): void => {
    endWord();
    const text = line.slice(begin, end).trim();
    if (words.length > 0) commands.push({ text, words });
    words = [];
  };
  let index = 0;
  while (index < line.length) {
    const char = line[index] ?? '';
    if (char === '\\') {
      if (line[index + 1] !== '\n') word = (word ?? '') + (line[index + 1] ?? '');
      index += 2;
    } else if (char === "'" || char === '"') {
      const end = closingQuote(line, index);
      word = (word ?? '') + line.slice(index + 1, end);
      index = end + 1;
    } else if (char === '#' && word === undefined) {
      while (index < line.length && line[index] !== '\n') index++;
    } else if (line.startsWith('<<', index) && !line.startsWith('<<<', index)) {
      const mark = /^<<-?\s*(['"]?)([\w.-]+)\1/.exec(line.slice(index));
      if (mark) endMarks.push(mark[2] ?? '');
      index += mark?.[0].length ?? 2;
    } else if (/[<>]/.test(char) || (char === '&' && line[index + 1] === '>')) {
      // A redirection and its target are not words; a number before it is a file descriptor.
      if (word !== undefined && /^\d+$/.test(word)) word = undefined;
      endWord();
      index += /^(&>>?|[<>]{1,3}&?)\s*[^\s;&|<>]*/.exec(line.slice(index))?.[0].length ?? 1;
    } else if (char === '\n') {
      endCommand(index);
      index++;
      for (const mark of endMarks) index = afterHereDocument(line, index, mark);
      endMarks = [];
      begin = index;
    } else if (/[;|&]/.test(char)) {
      endCommand(index);
      while (/[;|&]/.test(line[index] ?? '')) index++;
      begin = index;
    } else if (/[()]/.test(char) || /\s/.test(char)) {
      endWord();
      index++;
    } else {
      word = (word ?? '') + char;
      index++;
    }
  }
  endCommand(line.length);
  return commands;
}

function closingQuote(line: string, open: number): number {
  const quote = line[open];
  let index = open + 1;
  while (index < line.length && line[index] !== quote) index += line[index] === '\\' && quote === '"' ? 2 : 1;
  return index;
}

function afterHereDocument(line: string, from: number, mark: string): number {
  const end = new RegExp(`^\\t*${mark.replace(/[.]/g, '\\.')}$`, 'm').exec(line.slice(from));
  return end ? from + end.index + end[0].length : line.length;
}

function isCheck(words: readonly string[]): boolean {
  let rest = [...words];
  for (let depth = 0; depth < 8; depth++) {
    rest = withoutPrefixes(rest);
    const [first = '', ...args] = rest;
    const program = nameOf(first);
    const inner = argumentOf(program, first, args);
    if (inner === undefined) return isCheckOf(program, first, args);
    if (typeof inner === 'string') return checkIn(inner) !== undefined;
    rest = inner;
  }
  return false;
}

/** What the program itself would run: arguments, or a line for a shell. */
function argumentOf(program: string, first: string, args: readonly string[]): string[] | string | undefined {
  if (/^(ba|z|da)?sh$/.test(program)) {
    const flag = args.findIndex((arg) => /^-\w*c$/.test(arg));
    if (flag >= 0) return args[flag + 1] ?? '';
    const script = args.find((arg) => !arg.startsWith('-'));
    if (script === undefined) return undefined;
    return [script.includes('/') ? script : `./${script}`, ...args.slice(args.indexOf(script) + 1)];
  }
  if (/^python[\d.]*$|^py$/.test(program) && args[0] === '-m') return args.slice(1);
  const runner = RUNNERS[program];
  const plain = args.findIndex((arg) => !arg.startsWith('-'));
  if (runner?.test(args[plain] ?? '')) return args.slice(plain + 1).filter((arg, index) => index > 0 || arg !== '--');
  return first === '' ? [] : undefined;
}

function isCheckOf(program: string, first: string, args: readonly string[]): boolean {
  if (first === '' || args.some((arg) => /^(--version|--help|-h|-V)$/.test(arg))) return false;
  if (CHECKERS.has(program)) return true;
  const plain = plainWords(args);
  if (PACKAGE_MANAGERS.has(program)) {
    const script = /^(run|run-script)$/.test(plain[0] ?? '')
      ? plain[1]
      : plain[0] === 'workspace'
        ? plain[2]
        : plain[0];
    if (script === undefined) return false;
    return SCRIPT.test(script) && !(program !== 'bun' && script === 'ci' && plain[0] === 'ci')
      ? true
      : script === 't' || script === 'tst' || CHECKERS.has(script);
  }
  if (program === 'node')
    return (
      args.includes('--test') || args.some((arg) => /(^|[/.])(test|spec|check|lint|build)s?\.[cm]?[jt]s$/.test(arg))
    );
  if (/^python[\d.]*$/.test(program))
    return (
      /(^|[/_])tests?\b.*\.py$/.test(args[0] ?? '') || (args[0]?.endsWith('manage.py') === true && args[1] === 'test')
    );
  if (program === 'make' && plain.length === 0) return true;
  const wanted = SUBCOMMANDS[ALIASES[program] ?? program];
  if (wanted) return [...plain, ...args.filter((arg) => arg.startsWith('-'))].some((word) => wanted.test(word));
  // A script of the project: ./scripts/test.sh, bin/check
  return first.includes('/') && SCRIPT.test(program.replace(/^run[-_]/, ''));
}

function plainWords(args: readonly string[]): string[] {
  const plain: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? '';
    if (arg === '--') break;
    if (WITH_VALUE.has(arg)) index++;
    else if (!arg.startsWith('-') && !/^\w+=/.test(arg)) plain.push(arg);
  }
  return plain;
}

function withoutPrefixes(words: readonly string[]): string[] {
  let rest = [...words];
  for (;;) {
    const [first = ''] = rest;
    if (/^[A-Za-z_]\w*=/.test(first)) rest = rest.slice(1);
    else if (Object.hasOwn(WRAPPERS, nameOf(first))) {
      const wrapper = nameOf(first);
      rest = rest.slice(1);
      while (rest[0]?.startsWith('-')) rest = rest.slice(WRAPPER_WITH_VALUE.test(rest[0]) ? 2 : 1);
      rest = rest.slice(WRAPPERS[wrapper]);
    } else return rest;
  }
}

function nameOf(word: string): string {
  return word
    .replace(/^.*[/\\]/, '')
    .replace(/\.(exe|cmd|bat|sh|ps1)$/i, '')
    .replace(/@[\w.^~-]+$/, '');
}
