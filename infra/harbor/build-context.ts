import { createHash } from 'node:crypto';
import type { FileTree } from '../sandbox/files.ts';
import { type BuildContext, builtRepository, type ImageName, imageName } from '../sandbox/image.ts';
import { withCopiedModes } from './copied-modes.ts';
import { withoutIgnored } from './docker-ignore.ts';
import { type Instruction, instructions, rejected } from './dockerfile-instructions.ts';
import { imageOfStage, readStages } from './dockerfile-stages.ts';
import { flagsOf, plainDockerfile } from './plain-dockerfile.ts';

const dockerfileName = 'Dockerfile';

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
    bases: basesOf(source),
    stageLines: stages.map(({ endLine }) => endLine),
    timeoutSec,
  };
}

/** The files of a context whose Dockerfile is replaced by another that needs the added files. */
const rewritten = (files: FileTree, source: string, added: FileTree): FileTree =>
  new Map([...files, [dockerfileName, { mode: 0o644, bytes: Buffer.from(source) }], ...added]);

/** Makes a name from the files of a build, equal on every host. Each host adds the digests of its base images. */
export function builtImageName({ files, lastLines = [] }: Pick<BuildContext, 'files' | 'lastLines'>): string {
  const hash = createHash('sha256');
  for (const [path, { mode, bytes }] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${(mode & 0o111) === 0 ? 'file' : 'program'} ${bytes.byteLength}\n`);
    hash.update(bytes);
  }
  for (const line of lastLines) hash.update(`${line}\n`);
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
function basesOf(source: string): readonly ImageName[] {
  const stages = new Set<string>();
  const bases = new Map<string, ImageName>();
  const add = (image: string): void => {
    if (image !== 'scratch' && !stages.has(image.toLowerCase())) bases.set(image, imageName(image));
  };
  let number = 0;
  for (const instruction of readStages(source)) {
    const { keyword, rest, line, stage } = instruction;
    if (keyword === 'FROM') {
      add(imageOfStage(instruction));
      stages.add(String(number));
      if (stage !== null && stage.name !== '') stages.add(stage.name);
      number += 1;
    }
    const [, from] = keyword === 'COPY' ? (/(?:^|\s)--from=(\S+)/.exec(rest) ?? []) : [];
    if (from === undefined) continue;
    if (!/^\w[\w.:/@-]*$/.test(from)) throw rejected('COPY --from of a stage or an image by its name', line);
    add(from);
  }
  return [...bases.values()];
}
