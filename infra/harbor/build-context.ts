import { createHash } from 'node:crypto';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FileTree } from '../sandbox/files.ts';
import { type BuildContext, builtRepository, type ImageName, imageName } from '../sandbox/image.ts';
import { withCopiedModes } from './copied-modes.ts';
import { withoutIgnored } from './docker-ignore.ts';
import { type Instruction, instructions } from './dockerfile.ts';
import { flagsOf, plainDockerfile } from './plain-dockerfile.ts';

const dockerfileName = 'Dockerfile';
const shownLength = 120;
/** The most characters that take the place of the variables in a line: each ARG may double those before it. */
const substitutedCharacters = 64 * 1024;

/**
 * Reads the build context of a task's image. Builds run in the Docker daemon, so instructions that make the daemon itself
 * download something are rejected, and so is syntax that the daemon may read differently. Throws TemperFailure UnsupportedTask.
 */
export function readBuildContext(files: FileTree, timeoutSec: number): BuildContext {
  const written = new TextDecoder().decode(files.get(dockerfileName)?.bytes);
  requireReadable(written);
  const plain = plainDockerfile(written);
  const kept = withoutIgnored(files);
  const copyable = withoutIgnored(files, []);
  const { source, files: copied } = withCopiedModes(plain, copyable, rejected);
  const found = instructions(source);
  for (const instruction of found) requireHarmless(instruction);
  const stages = found.filter(({ keyword }) => keyword === 'FROM');
  return {
    files: source === written ? kept : rewritten(kept, source, new Map([...plain.files, ...copied])),
    scripts: plain.scripts,
    bases: basesOf(found),
    stageLines: stages.map(({ endLine }) => endLine),
    timeoutSec,
  };
}

/** The files of a context whose Dockerfile is replaced by another that needs the added files. */
const rewritten = (files: FileTree, source: string, added: FileTree): FileTree =>
  new Map([...files, [dockerfileName, { mode: 0o644, bytes: Buffer.from(source) }], ...added]);

/** Makes a name from the files of a build, equal on every host. Each host adds the digests of its base images. */
export function builtImageName({ files }: Pick<BuildContext, 'files'>): string {
  const hash = createHash('sha256');
  for (const [path, { mode, bytes }] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${(mode & 0o111) === 0 ? 'file' : 'program'} ${bytes.byteLength}\n`);
    hash.update(bytes);
  }
  return `${builtRepository}:${hash.digest('hex').slice(0, 40)}`;
}

/** Rejects syntax that builders read differently: the checks must see the same instructions as the builder. */
function requireReadable(source: string): void {
  const lines = source.split(/\r?\n/);
  const directive = lines.find((line) => /^\s*#\s*escape\s*=\s*[^\\\s]/i.test(line));
  if (directive !== undefined) throw rejected('the default escape character', '# escape=');
  const [odd] = /[^\P{C}\t\r\n]|[\u2028\u2029]|\r(?!\n)/u.exec(source) ?? [];
  if (odd !== undefined) throw rejected('plain text', odd);
  const twice = lines.find((line) => /\\\\[ \t]*$/.test(line));
  if (twice !== undefined) throw rejected('no line that ends in two backslashes', twice);
}

/** Options that only BuildKit has, by their instruction; those that change nothing are gone by now. */
const ofBuildKit: Readonly<Record<string, RegExp>> = {
  RUN: /^--(?:mount|network|security|device)\b/,
  COPY: /^--(?:parents|exclude)\b/,
};

/**
 * Rejects triggers, which would run unchecked in a later build, options that the daemon's builder lacks, and `ADD` of anything but
 * plain paths.
 */
function requireHarmless({ keyword, rest, line }: Instruction): void {
  if (keyword === 'ONBUILD') throw rejected('no ONBUILD', line);
  const options = flagsOf(rest).flags.split(/\s+/);
  const lacking = options.find((option) => ofBuildKit[keyword]?.test(option));
  if (lacking !== undefined)
    throw rejected(`${keyword} without ${lacking.split('=', 1)}, for which temper's builds lack BuildKit`, line);
  if (keyword !== 'ADD') return;
  // Variables, quotes and escapes could hide a URL.
  const plain = /^\[("[^"]*"[\s,]*)*\]$/.test(rest)
    ? (rest.match(/"[^"]*"/g) ?? []).every((word) => isPlainPath(word.slice(1, -1)))
    : rest.split(/\s+/).every(isPlainPath);
  if (!plain) throw rejected('ADD of plain paths in the context (use RUN for downloads)', line);
}

const isPlainPath = (word: string): boolean => /^[\w./*?@%+,~=-]*$/.test(word) || /^--chown=[\w:.-]+$/.test(word);

/** The images that a Dockerfile names in FROM and in COPY --from. */
function basesOf(found: readonly Instruction[]): readonly ImageName[] {
  const variables = new Map<string, string>();
  const stages = new Set<string>();
  const bases = new Map<string, ImageName>();
  const add = (image: string): void => {
    if (image !== 'scratch' && !stages.has(image.toLowerCase())) bases.set(image, imageName(image));
  };
  let number = 0;
  for (const { keyword, rest, line } of found) {
    if (keyword === 'ARG' && number === 0) addVariables(variables, rest);
    if (keyword === 'FROM') {
      const [image, as, name] = substitute(rest, variables)
        .split(/\s+/)
        .filter((word) => !word.startsWith('--'));
      if (image === undefined || !/^[\w][\w.:/@-]*$/.test(image)) throw rejected('FROM an image by its name', line);
      add(image);
      stages.add(String(number));
      if (as?.toLowerCase() === 'as' && name !== undefined) stages.add(name.toLowerCase());
      number += 1;
    }
    const [, from] = keyword === 'COPY' ? (/(?:^|\s)--from=(\S+)/.exec(rest) ?? []) : [];
    if (from !== undefined) add(from);
  }
  return [...bases.values()];
}

function addVariables(variables: Map<string, string>, rest: string): void {
  for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=("[^"]*"|'[^']*'|\S*)/g)) {
    variables.set(name, substitute(value.replaceAll(/^["']|["']$/g, ''), variables));
  }
}

function substitute(text: string, variables: ReadonlyMap<string, string>): string {
  let left = substitutedCharacters;
  return text.replaceAll(
    /\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})/g,
    (_, plain: string | undefined, braced: string | undefined, fallback: string | undefined) => {
      const value = variables.get(plain ?? braced ?? '') ?? fallback ?? '';
      left -= value.length;
      if (left < 0) throw rejected(`values of ARG of at most ${substitutedCharacters} characters`, text);
      return value;
    },
  );
}

function rejected(expected: string, line: string): TemperFailure {
  const got = line.length > shownLength ? `${line.slice(0, shownLength)}…` : line;
  const todo = 'build the image yourself and name it: environment.docker_image in task.toml, or ?image= of a data set';
  return new TemperFailure(
    'UnsupportedTask',
    `environment/Dockerfile: expected ${expected}, got ${JSON.stringify(got)}; ${todo}`,
  );
}
