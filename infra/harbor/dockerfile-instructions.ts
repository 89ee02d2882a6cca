import { TemperFailure } from '../../workflows/contracts/failures.ts';

export interface Instruction {
  readonly keyword: string;
  readonly rest: string;
  readonly line: string;
  /** The number of its first line, counted from 1. */
  readonly startLine: number;
  /** The number of its last line. */
  readonly endLine: number;
}

const isBlank = (line: string): boolean => /^\s*(#|$)/.test(line);
const continued = /\\[ \t]*$/;
const shownLength = 120;

/** Splits a Dockerfile into instructions as the builder does, without comments and empty lines inside an instruction. */
export function instructions(source: string): readonly Instruction[] {
  const found: Instruction[] = [];
  let begun: string[] = [];
  let startLine = 0;
  const lines = source.split(/\r?\n/);
  for (const [index, text] of lines.entries()) {
    if (isBlank(text) && index < lines.length - 1) continue;
    if (begun.length === 0) startLine = index + 1;
    // Each line is looked at alone and they are joined once, which takes linear time.
    if (continued.test(text) && index < lines.length - 1) {
      begun.push(text.replace(continued, ''));
      continue;
    }
    const line = [...begun, isBlank(text) ? '' : text].join('').trim();
    begun = [];
    if (line === '') continue;
    const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
    found.push({ keyword: keyword.toUpperCase(), rest, line, startLine, endLine: index + 1 });
  }
  return found;
}

/** Returns the failure for a line that temper's builds can't carry out as it is meant. */
export function rejected(expected: string, line: string): TemperFailure {
  const todo = 'build the image yourself and name it: environment.docker_image in task.toml, or ?image= of a data set';
  return unsupportedLine(expected, line, todo);
}

export function unsupportedLine(expected: string, line: string, todo: string): TemperFailure {
  const got = line.length > shownLength ? `${line.slice(0, shownLength)}…` : line;
  return new TemperFailure(
    'UnsupportedTask',
    `environment/Dockerfile: expected ${expected}, got ${JSON.stringify(got)}; ${todo}`,
  );
}
