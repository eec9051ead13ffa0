/*
 * A command line as an allow rule sees it: one simple command whose words mean exactly what they say, or nothing. It is
 * not a shell parser. What is accepted is a list of characters that no shell gives a meaning; everything else is asked
 * about. One pass, no backtracking.
 */

const MAX_COMMAND_CHARS = 4_096;

/** Characters without a meaning in bash, dash and zsh. Only at the start of a word has `=` one: `=ls` is a path in zsh. */
const PLAIN = /[A-Za-z0-9_@%+=:,./-]/;
const PROGRAM = /^[A-Za-z0-9_./][A-Za-z0-9_+.,:@/-]*$/;

/** The words of a command, quotes removed; undefined if it is anything but one simple command without expansion. */
export function simpleCommand(line: string): string[] | undefined {
  if (line.length > MAX_COMMAND_CHARS) return undefined;
  const words: string[] = [];
  let at = 0;
  while (at < line.length) {
    if (line[at] === ' ') {
      at++;
      continue;
    }
    const word = readWord(line, at);
    if (!word) return undefined;
    // A quoted program is never one: quotes keep the shell from seeing its own words and aliases.
    if (words.length === 0 && (word.quoted || !isProgram(word.text))) return undefined;
    words.push(word.text);
    at = word.end;
  }
  return words.length > 0 ? words : undefined;
}

interface Word {
  readonly text: string;
  readonly quoted: boolean;
  readonly end: number;
}

function readWord(line: string, start: number): Word | undefined {
  let text = '';
  let quoted = false;
  let at = start;
  while (at < line.length && line[at] !== ' ') {
    const character = line.charAt(at);
    if (character === "'" || character === '"') {
      const end = line.indexOf(character, at + 1);
      const inside = line.slice(at + 1, end);
      if (end < 0 || !isLiteral(inside, character)) return undefined;
      text += inside;
      quoted = true;
      at = end + 1;
    } else {
      if (!PLAIN.test(character) || (at === start && character === '=')) return undefined;
      text += character;
      at++;
    }
  }
  return { text, quoted, end: at };
}

/** Printable ASCII only: what looks like a blank or a letter may be another character. */
function isLiteral(text: string, quote: string): boolean {
  return quote === "'" ? /^[ -~]*$/.test(text) : /^[ #%-[\]^_a-~]*$/.test(text);
}

function isProgram(word: string): boolean {
  return PROGRAM.test(word) && !SHELL_WORDS.has(word);
}

/**
 * Words that the shell itself acts on, so that no program of that name runs: reserved words, builtins and modifiers of
 * bash, dash and zsh. Some run their arguments (`eval`, `exec`, `command`), some change what later commands mean (`cd`,
 * `export`, `alias`). The harmless ones are never asked about.
 */
const SHELL_WORDS: ReadonlySet<string> = new Set(
  (
    'case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat select then time until while ' +
    '. : alias autoload bg bind bindkey break builtin bye caller cap cd chdir clone command comparguments compcall compctl ' +
    'compdescribe compfiles compgen compgroups complete compopt compquote comptags comptry compvalues continue declare dirs ' +
    'disable disown echo echotc echoti emulate enable eval exec exit export false fc fg float functions getcap getln getopts ' +
    'hash help history integer jobs kill let limit local log logout mapfile popd print printf private ' +
    'pushd pushln pwd r read readarray readonly rehash return sched set setcap setopt shift shopt source stat suspend test ' +
    'times trap true ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt vared wait whence where ' +
    'which zcompile zcurses zdelattr zf_chgrp zf_chmod zf_chown zf_ln zf_mkdir zf_mv zf_rm zf_rmdir zf_sync zformat zftp ' +
    'zgetattr zlistattr zle zmodload zparseopts zprof zpty zregexparse zselect zsetattr zsocket zstat zstyle zsystem ztcp'
  ).split(' '),
);
