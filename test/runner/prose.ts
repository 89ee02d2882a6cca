import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Checks the prose of every `*.ts` and `*.md` file: phrases that readers stumble over, and docstrings that leave their
 * subject to the identifier below them. `--changed REF` checks only the lines that differ from REF. A line is excepted by
 * the mark `prose-ok:` and a reason, on the line itself or on the one above it.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));

interface BannedPhrase {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** The phrases that no comment, message or page may contain, matched as whole words in any case. */
const bannedPhrases: readonly BannedPhrase[] = [
  ban('(?<!there )(?:is|are|was|were) none', 'say "is not a valid …", or name what is missing'),
  ban('(?:go|goes|going|gone|went) on', 'say "continue" or "resume"'),
  ban('anew', 'say "again" or "from the start"'),
  ban('(?:is|are|was|were|be) told|told of', 'say "receives", "is given" or "learns"'),
  ban('keeps? no others?', 'say "does not block the others"'),
  ban('mend(?:s|ed|ing)?', 'say "fix"'),
  ban('so many of', 'say "a number of", or give the number'),
  ban('whoever|nobody|somebody|anybody', 'name the caller, process or user'),
  ban('mouths?|speakers?', 'say "sink", "reply" or "backend"'),
  ban('hear|hears|heard', 'say "receive" or "observe"'),
  ban('bells?', 'say "signal"'),
  ban('books', 'say "tally" or "records"'),
  ban('talk(?:s|ed|ing)?', 'say "conversation", "request" or "connect"'),
  ban('patience', 'say "retry limit" or "timeout"'),
  ban('(?:broken|broke|breaks|breaking) off', 'say "aborted" or "interrupted"'),
  ban('of others|of ours|of theirs', 'say "third-party", "temper\'s own", or name the owner'),
  ban('com(?:e|es|ing) to nothing', 'say "fails" or "has no effect"'),
  ban('(?:gives|given|gave) back', 'say "returns" or "releases"'),
  ban('to be had', 'say "available"'),
  ban('at hand', 'say "available"'),
  ban("can't make up (?:its|their) mind", 'say "is flaky"'),
];

/** Words that begin a docstring without a subject of its own. */
const headlessWords = new Set(
  `about above after against along also among an and around as at before behind below beneath beside besides between
  beyond but by despite down during either except for from how if in inside into it its like near neither nor not of off
  on once onto or out outside over per since so that their them then these they this those though through throughout to
  toward towards under unless until up upon via what whatever when whenever where whereas wherever which whichever while
  who whom whose why with within without`
    .split(/\s+/)
    .filter((word) => word !== 'an' && word !== 'once'),
);

/** Nouns that a demonstrative may introduce: "This host's sandboxes." stands alone, "This is why" does not. */
const demonstrative =
  /^(?:this|these|those|that) (?!is\b|are\b|was\b|were\b|has\b|have\b|may\b|can\b|must\b|who\b|which\b|of\b|that\b)[a-z]/i;
const exemptFiles =
  /^(?:test\/fixtures\/|test\/replay\/histories\/|test\/runner\/prose(?:\.test)?\.ts$|docs\/reference\/|infra\/tasks\/generated\/temper-tiny\/|LICENSE)/;
const exceptionMark = /prose-ok: \S/;

export interface Finding {
  /** The line's number, from 1. */
  readonly line: number;
  readonly problem: string;
  readonly text: string;
}

/** Returns the findings of one file, in the order of their lines. */
export function checkProse(path: string, source: string): readonly Finding[] {
  const lines = source.split('\n');
  const excepted = (index: number): boolean =>
    exceptionMark.test(lines[index] ?? '') || (index > 0 && exceptionMark.test(lines[index - 1] ?? ''));
  const phrases = lines.flatMap((text, index) =>
    bannedPhrases.flatMap(({ pattern, instead }) => {
      const found = pattern.exec(text)?.[0];
      return found === undefined ? [] : [{ line: index + 1, problem: `"${found}": ${instead}`, text: text.trim() }];
    }),
  );
  const headless = path.endsWith('.ts') ? headlessDocstrings(source) : [];
  return [...phrases, ...headless]
    .filter(({ line }) => !excepted(line - 1))
    .sort((one, other) => one.line - other.line);
}

/** Returns the docstrings that begin with a preposition, a wh-word, a conjunction or a pronoun. */
function headlessDocstrings(source: string): readonly Finding[] {
  return [...source.matchAll(/^[ \t]*\/\*\*[ \t]*(?:\n[ \t]*\*[ \t]*)?([^\n]*)/gm)].flatMap(
    ({ index, 0: whole, 1: text = '' }) => {
      const word = /^[A-Za-z]+/.exec(text)?.[0] ?? '';
      if (!headlessWords.has(word.toLowerCase()) || demonstrative.test(text)) return [];
      const line = source.slice(0, index + whole.length - text.length).split('\n').length;
      const problem = `the docstring begins with "${word}": begin with a third-person verb or a noun phrase`;
      return [{ line, problem, text: text.trim() }];
    },
  );
}

function ban(words: string, instead: string): BannedPhrase {
  return { pattern: new RegExp(`(?<![\\w-])(?:${words})(?![\\w-])`, 'i'), instead };
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
}

/** Returns the tracked and new files that the rules hold for. */
function proseFiles(): readonly string[] {
  return git('ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '*.ts', '*.md')
    .split('\n')
    .filter((path) => path !== '' && !exemptFiles.test(path));
}

/** Returns the numbers of the lines that differ from a commit, by file. */
function changedLines(ref: string): ReadonlyMap<string, ReadonlySet<number>> {
  const changed = new Map<string, Set<number>>();
  let lines = new Set<number>();
  for (const text of git('diff', '--unified=0', '--no-color', ref, '--', '*.ts', '*.md').split('\n')) {
    const path = /^\+\+\+ b\/(.+)$/.exec(text)?.[1];
    if (path !== undefined) {
      lines = new Set();
      changed.set(path, lines);
    }
    const [, start = '', count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(text) ?? [];
    if (start !== '') for (let line = Number(start); line < Number(start) + Number(count); line++) lines.add(line);
  }
  return changed;
}

function main(words: readonly string[]): void {
  const ref = words[0] === '--changed' ? words[1] : undefined;
  const changed = ref === undefined ? undefined : changedLines(ref);
  let count = 0;
  for (const path of proseFiles()) {
    if (changed !== undefined && !changed.has(path)) continue;
    for (const { line, problem, text } of checkProse(path, readFileSync(join(root, path), 'utf8'))) {
      if (changed !== undefined && changed.get(path)?.has(line) !== true) continue;
      count += 1;
      console.log(`${path}:${line} ${problem}\n    ${text}`);
    }
  }
  if (count > 0) {
    console.log(`${count} lines to reword; the rules are in AGENTS.md, an exception is "prose-ok: REASON" on the line`);
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
