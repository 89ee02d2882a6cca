import { type Instruction, rejected } from './dockerfile-instructions.ts';
import { readStages, type Stage, type StagedInstruction, variablesIn } from './dockerfile-stages.ts';
import { isKnown, mapKnown, written } from './dockerfile-words.ts';

/*
 * Dockerfiles whose image is the same from the daemon's own builder as from BuildKit. That builder knows no arguments for the
 * platform, gives a stage no arguments of the one that it starts from, makes the directory of a WORKDIR as root whatever USER
 * says, and drops what is written to a VOLUME. It is used because it alone limits the memory and the processors of a build.
 * Volumes are left out: they would only keep a sandbox's files out of its own disk.
 */

/** A platform as images name it. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', x86_64: 'amd64', aarch64: 'arm64' };
const architectureOf = (name: string): string => architectures[name] ?? name;
const ownPlatform: Platform = { os: 'linux', architecture: architectureOf(process.arch) };

const nameOf = ({ os, architecture }: Platform): string => `${os}/${architecture}`;

/** The arguments that BuildKit sets. */
const argumentsOf = (platform: Platform): ReadonlyMap<string, string> =>
  new Map(
    ['BUILD', 'TARGET'].flatMap((prefix) => [
      [`${prefix}PLATFORM`, nameOf(platform)],
      [`${prefix}OS`, platform.os],
      [`${prefix}ARCH`, platform.architecture],
      [`${prefix}VARIANT`, ''],
      [`${prefix}OSVERSION`, ''],
    ]),
  );

/** The change of a line. */
interface Edit {
  readonly before?: readonly string[];
  /** The text in place of the instruction. */
  readonly text?: string;
  readonly after?: readonly string[];
}

/** Rewrites a Dockerfile without here-documents. One that both builders read alike is returned as it is. Throws UnsupportedTask. */
export function likeBuildKit(source: string, platform: Platform = ownPlatform): string {
  const given = argumentsOf(platform);
  const edits: (readonly [Instruction, Edit])[] = [];
  const users = new Map<Stage | null, string>();
  const named = new Set<string>();
  let first: Instruction | null = null;
  for (const instruction of readStages(source, given)) {
    const { keyword, rest, stage, expand } = instruction;
    first ??= instruction;
    if (keyword === 'FROM' || keyword === 'ARG') for (const [name] of rest.matchAll(/[A-Z]+/g)) named.add(name);
    if (keyword === 'FROM') users.set(stage, users.get(stage?.parent ?? null) ?? '');
    if (keyword === 'USER') users.set(stage, expand(rest));
    const edit = editOf(instruction, { given, platform, user: users.get(stage) ?? '' });
    if (edit !== null) edits.push([instruction, edit]);
  }
  const added = [...given].filter(([name]) => named.has(name)).map(([name, value]) => argumentLine(name, value));
  if (first === null || (edits.length === 0 && added.length === 0)) return source;
  return rewritten(source, [...edits, [first, { before: added }]]);
}

interface EditMeans {
  readonly given: ReadonlyMap<string, string>;
  readonly platform: Platform;
  /** The account of the stage's commands, as far as its lines say it. */
  readonly user: string;
}

function editOf(instruction: StagedInstruction, { given, platform, user }: EditMeans): Edit | null {
  const { keyword, rest, stage } = instruction;
  if (keyword === 'ARG' && stage === null) return globalArgument(rest, given);
  if (keyword === 'FROM') return stageEdit(instruction, platform);
  if (keyword === 'VOLUME') return { text: '' };
  return keyword === 'WORKDIR' ? ownedDirectory(instruction, user) : null;
}

/** Writes a value with quotes. What only the build can tell remains a variable. */
const quoted = (value: string): string => `"${mapKnown(value, (part) => part.replaceAll(/["\\$]/g, '\\$&'))}"`;
const argumentLine = (name: string, value: string): string => `ARG ${name}=${quoted(value)}`;

/** Gives an argument of the platform its value where a line before all stages declares it without one. */
function globalArgument(rest: string, given: ReadonlyMap<string, string>): Edit | null {
  const declared = variablesIn(rest, false);
  if (!declared.some(([name, value]) => value === undefined && given.has(name))) return null;
  const words = declared.map(([name, value]) => {
    const own = given.get(name);
    return value !== undefined ? `${name}=${value}` : own === undefined ? name : `${name}=${quoted(own)}`;
  });
  return { text: `ARG ${words.join(' ')}` };
}

/** Writes the platform of a stage as a value, and the arguments of the stage that it starts from. */
function stageEdit(instruction: StagedInstruction, platform: Platform): Edit | null {
  const { rest, stage } = instruction;
  const after = [...(stage?.parent?.args ?? [])].map(([name, value]) => argumentLine(name, value));
  const words = rest.split(/\s+/);
  const flags = words.filter((word) => word.startsWith('--'));
  const kept = flags.flatMap((flag) => keptFlag(flag, instruction, platform));
  const text = `FROM ${[...kept, ...words.filter((word) => !word.startsWith('--'))].join(' ')}`;
  const isSame = kept.join(' ') === flags.join(' ');
  return isSame && after.length === 0 ? null : { after, ...(!isSame && { text }) };
}

/** Returns the options that stand for one of a FROM. Throws UnsupportedTask for a platform that builds can't have. */
function keptFlag(flag: string, { expand, line }: StagedInstruction, platform: Platform): readonly string[] {
  const [, value] = /^--platform=(.*)$/.exec(flag) ?? [];
  if (value === undefined) return [flag];
  const asked = platformIn(expand(value));
  const own = nameOf(platform);
  // A daemon that runs programs of amd64 on another processor has images for it as well.
  if (asked !== own && asked !== 'linux/amd64') throw rejected(`a stage for ${own}, the platform of its host`, line);
  if (!value.includes('$')) return [flag];
  return asked === own ? [] : [`--platform=${asked}`];
}

/** Reads `linux/amd64`, `amd64` or `linux/arm64/v8`. */
function platformIn(text: string): string {
  const parts = text.toLowerCase().split('/');
  const [os = '', architecture = os] = parts.length === 1 ? ['linux', text.toLowerCase()] : parts;
  return nameOf({ os, architecture: architectureOf(architecture) });
}

/** Makes the directory $1 and those above it that do not exist, and gives them to the account $2, with its group if it has one. */
const makeOwned =
  'd=$1 t=; while [ ! -e "$d" ]; do t=$d; d=$(dirname "$d"); done; [ -z "$t" ] || { mkdir -p "$1" && { chown -R "$2:" "$t" 2>/dev/null || chown -R "$2" "$t"; }; }';

/** Makes the directory of a WORKDIR for the account of the stage. */
function ownedDirectory({ rest, expand }: StagedInstruction, user: string): Edit | null {
  const path = expand(rest);
  if (!isKnown(path) || !isKnown(user) || /^(?:|root|0)(?::|$)/.test(user)) return null;
  const command = ['sh', '-c', makeOwned, 'sh', path, user];
  return { before: ['USER root', `RUN ${JSON.stringify(command)}`, `USER ${written(user)}`] };
}

function rewritten(source: string, edits: readonly (readonly [Instruction, Edit])[]): string {
  const lines: (readonly string[])[] = source.split(/\r?\n/).map((line) => [line]);
  for (const [{ startLine, endLine }, { before = [], text, after = [] }] of edits) {
    if (text !== undefined)
      for (let at = startLine; at <= endLine; at++) lines[at - 1] = at === startLine ? [text] : [];
    lines[startLine - 1] = [...before, ...(lines[startLine - 1] ?? [])];
    lines[endLine - 1] = [...(lines[endLine - 1] ?? []), ...after];
  }
  return lines.flat().join('\n');
}
