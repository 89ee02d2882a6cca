import { type ShellPart, type ShellToken, shellTokens } from './shell-words.ts';

/*
 * Finds a command in a shell script without running it.
 */

/** A simple command of a script. */
export interface ShellCommand {
  readonly line: number;
  /** The command as the script has it, in one line. */
  readonly text: string;
  /** The program by its name without a directory, and its arguments; without keywords, and without programs that start it. */
  readonly words: readonly string[];
  /** The variables that are set for this command alone. */
  readonly env: ReadonlyMap<string, string>;
}

/**
 * Returns the first command that a script needs and that is sought; undefined if there is none. A script does not need a command
 * whose failure it passes over (`|| true`), nor one that it runs only if a program is missing (`command -v curl ||`).
 */
export function findCommand(
  { script, line }: ShellPart,
  isSought: (command: ShellCommand) => boolean,
  depth = 0,
): ShellCommand | undefined {
  if (depth > deepest) return undefined;
  const walk = createWalk(script, isSought, depth);
  let tokens: ShellToken[] = [];
  for (const token of [...shellTokens(script, line), lastLine]) {
    if (token.operator === null || token.operator === '>' || token.operator === '<<') tokens.push(token);
    else {
      if (tokens.length > 0) walk.command(tokens);
      tokens = [];
      walk.operator(token.operator);
    }
  }
  return walk.needed();
}

/** The depth of scripts within scripts that are read. */
const deepest = 10;
/** The number of open groups, and of open conditions, that are kept apart. */
const mostOpen = 50;
const lastLine: ShellToken = { operator: '\n', text: '', nested: [], line: 0, start: 0, end: 0 };

/** A part of a script between parentheses or braces, or the script itself. */
interface Group {
  /** Whether all of it is guarded. */
  readonly guarded: boolean;
  /** Whether what follows runs only after a failure. */
  afterFailure: boolean;
  /** Those before the next command and joined to it by `&&`, `||` and pipes. */
  joined: Found[];
  /** The ones among them whose failure the command before has passed over. */
  tolerated: Found[];
  readonly all: Found[];
}

/** An `if`, by the part in which what its condition looks for is missing, and the part that is being read. */
interface Branch {
  missingIn: 'then' | 'else' | null;
  part: 'if' | 'then' | 'else';
}

/** A sought command. */
interface Found {
  readonly command: ShellCommand;
  guarded: boolean;
}

const newGroup = (guarded: boolean): Group => ({ guarded, afterFailure: false, joined: [], tolerated: [], all: [] });

/** A condition that holds if the image has a program or a package. */
const finds =
  /\b(?:command -[vV]|which|type|hash)\b|\bimport \w|\brequire(?:\.resolve)?\(|\b(?:pip3?|uv pip) show\b|\b(?:dpkg|rpm) -\w|--version\b/;
/** A condition that holds if the image lacks a file or a program. */
const misses = /^(?:\[\[?|test)\s+(?:!\s+-[defhrsx]\s|-z\s+"?\$\((?:command -v|which|type)\b)/;
/** Commands that pass over a failure. */
const tolerant = new Set(['true', ':', 'echo', 'printf', 'warn']);
const joining = new Set(['&&', '||', '|', '|&']);

/** Follows the conditions of a script. */
function createBranches() {
  const branches: Branch[] = [];
  return {
    keyword(word: string): void {
      const branch = branches.at(-1);
      if (word === 'if' && branches.length < mostOpen) branches.push({ missingIn: null, part: 'if' });
      else if (word === 'fi') branches.pop();
      else if (branch !== undefined && (word === 'then' || word === 'else')) branch.part = word;
      else if (branch !== undefined && word === 'elif') Object.assign(branch, { missingIn: null, part: 'if' });
    },
    /** Notes in which part of an `if` something is missing, by a command of its condition. */
    command(text: string, isNegated: boolean): void {
      const branch = branches.at(-1);
      if (branch?.part !== 'if') return;
      if (misses.test(text)) branch.missingIn = isNegated ? 'else' : 'then';
      else if (finds.test(text)) branch.missingIn = isNegated ? 'then' : 'else';
    },
    /** Whether a program or a file is missing where the script is now. */
    isMissing: (): boolean => branches.some(({ missingIn, part }) => missingIn === part),
  };
}

/** Reads the commands of a script in order, and notes which of the sought ones are guarded. */
function createWalk(script: string, isSought: (command: ShellCommand) => boolean, depth: number) {
  const groups: Group[] = [newGroup(false)];
  const branches = createBranches();
  let last = '\n';
  /** Whether the command before holds only if something is missing. */
  let lookedFor = false;
  const group = (): Group => groups.at(-1) ?? newGroup(false);
  function open(): void {
    if (groups.length < mostOpen) groups.push(newGroup(group().guarded || group().afterFailure));
  }

  function close(): void {
    const closed = groups.length > 1 ? groups.pop() : undefined;
    if (closed === undefined) return;
    for (const one of closed.all) note(one);
  }

  function note(found: Found): void {
    group().joined.push(found);
    group().all.push(found);
  }

  /** Notes that a command passes over the failure of those before it, or takes that back: `|| echo failed && exit 1`. */
  function tolerate([program = '', status = '0']: readonly string[]): void {
    const { joined, tolerated } = group();
    if (last === '||' && tolerant.has(program)) {
      group().tolerated = joined.filter(({ guarded }) => !guarded);
      for (const one of joined) one.guarded = true;
    } else if (last === '&&' && (program === 'false' || (/^(?:exit|return)$/.test(program) && status !== '0'))) {
      for (const one of tolerated) one.guarded = false;
    } else if (last !== '&&') group().tolerated = [];
  }

  return {
    command(tokens: readonly ShellToken[]): void {
      const words = tokens.filter(({ operator }) => operator === null);
      let first = 0;
      for (; keywords.has(words[first]?.text ?? ''); first += 1) {
        const { text = '' } = words[first] ?? {};
        if (text === '{') open();
        else if (text === '}') close();
        else branches.keyword(text);
      }
      const [from, to] = [words[first], words.at(-1)];
      if (from === undefined || to === undefined) return;
      const text = inOneLine(script.slice(from.start, to.end));
      const read = readCommand(words.slice(first).map((word) => word.text));
      const isNegated = words.slice(0, first).some((word) => word.text === '!');
      branches.command(text, isNegated);
      lookedFor = isNegated ? finds.test(text) && !misses.test(text) : misses.test(text);
      tolerate(read.words);
      const { guarded, afterFailure } = group();
      last = '';
      const command = soughtIn({ ...read, text, line: from.line }, tokens, { isSought, depth });
      if (command !== undefined) note({ command, guarded: guarded || afterFailure || branches.isMissing() });
    },
    operator(operator: string): void {
      if (operator === '\n' && joining.has(last)) return;
      last = operator;
      if (operator === '(') open();
      else if (operator === ')') close();
      // What follows the failure of a download is another way to download.
      else if (operator === '||') group().afterFailure = group().joined.length === 0;
      else if (operator === '&&') group().afterFailure ||= lookedFor;
      else if (!joining.has(operator)) Object.assign(group(), { afterFailure: false, joined: [] });
    },
    needed(): ShellCommand | undefined {
      while (groups.length > 1) close();
      return group().all.find(({ guarded }) => !guarded)?.command;
    },
  };
}

/** Joins the lines of a command. No run of blanks is matched twice, which could take for ever. */
const inOneLine = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim().replace(/\\$/, '').trim())
    .filter((line) => line !== '')
    .join(' ');

const keywords = new Set(['if', 'then', 'else', 'elif', 'fi', 'do', 'done', 'while', 'until', '!', '{', '}', 'time']);

/** Programs that start the rest of their words as a command, with the options that have a value. */
const starters: ReadonlyMap<string, RegExp> = new Map([
  ['sudo', /^-[ugpCD]$/],
  ['env', /^-[uSC]$/],
  ['exec', /^-a$/],
  ['timeout', /^-[ks]$/],
  ['nice', /^-n$/],
  ['stdbuf', /^$/],
  ['nohup', /^$/],
  ['command', /^$/],
  ['builtin', /^$/],
  ['ionice', /^-[cn]$/],
]);
const shells = new Set(['sh', 'bash', 'dash', 'ash', 'zsh']);
const assignment = /^(\w+)=([\s\S]*)$/;

/** Reads the words of a command: its own variables, and the program behind those that only start it. */
function readCommand(all: readonly string[]): Pick<ShellCommand, 'words' | 'env'> {
  const env = new Map<string, string>();
  let rest = all;
  for (;;) {
    const [first = ''] = rest;
    const [, variable, value = ''] = assignment.exec(first) ?? [];
    const program = nameOf(first);
    const valued = starters.get(program);
    if (variable !== undefined) {
      env.set(variable, value);
      rest = rest.slice(1);
    } else if (valued === undefined || /^-[vV]/.test(rest[1] ?? '')) return { words: [program, ...rest.slice(1)], env };
    else {
      let next = 1;
      while ((rest[next] ?? '').startsWith('-')) next += valued.test(rest[next] ?? '') ? 2 : 1;
      // The time that `timeout` allows comes before the command.
      rest = rest.slice(program === 'timeout' ? next + 1 : next);
    }
    if (rest.length === 0) return { words: [], env };
  }
}

const nameOf = (program: string): string => program.slice(program.lastIndexOf('/') + 1);

/** Whether a command is a shell that reads its script from its input. */
const isShell = ({ words: [program = '', ...args] }: Pick<ShellCommand, 'words'>): boolean =>
  shells.has(program) && args.every((arg) => arg.startsWith('-'));

interface Search {
  isSought(command: ShellCommand): boolean;
  readonly depth: number;
}

/** Returns a command itself, or the one in a script within it, if it is sought. */
function soughtIn(
  command: ShellCommand,
  tokens: readonly ShellToken[],
  { isSought, depth }: Search,
): ShellCommand | undefined {
  if (isSought(command)) return command;
  const { words, line } = command;
  const [program = '', ...args] = words;
  const given = shells.has(program) ? args.findIndex((arg) => arg.includes('c') && /^-[a-z]+$/.test(arg)) : -1;
  const own = given !== -1 ? args[given + 1] : program === 'eval' ? args.join(' ') : undefined;
  const nested = tokens.flatMap((token) => (token.operator === '<<' && !isShell(command) ? [] : token.nested));
  for (const part of [...nested, ...(own === undefined ? [] : [{ script: own, line }])]) {
    const found = findCommand(part, isSought, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
