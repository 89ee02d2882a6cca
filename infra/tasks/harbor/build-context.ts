import { createHash } from 'node:crypto';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import { type BuildContext, builtRepository, type ImageName, imageName } from '../../sandbox/image.ts';
import { withoutIgnored } from './docker-ignore.ts';
import { type Instruction, instructions } from './dockerfile.ts';

const dockerfileName = 'Dockerfile';
const shownLength = 120;

/**
 * What a task's image is built from. The builder runs as the daemon: what would make the daemon itself fetch something, and
 * what we can't read as it does, is refused by name.
 */
export function readBuildContext(files: FileTree, timeoutSec: number): BuildContext {
  const source = new TextDecoder().decode(files.get(dockerfileName)?.bytes);
  requireReadable(source);
  const found = instructions(source);
  for (const instruction of found) requireHarmless(instruction);
  const stages = found.filter(({ keyword }) => keyword === 'FROM');
  return {
    files: withoutIgnored(files),
    bases: basesOf(found),
    stageLines: stages.map(({ endLine }) => endLine),
    timeoutSec,
  };
}

/** The same on every host; what the base image is there, is added there. */
export function builtImageName({ files }: Pick<BuildContext, 'files'>): string {
  const hash = createHash('sha256');
  for (const [path, { mode, bytes }] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${(mode & 0o111) === 0 ? 'file' : 'program'} ${bytes.byteLength}\n`);
    hash.update(bytes);
  }
  return `${builtRepository}:${hash.digest('hex').slice(0, 40)}`;
}

/** Builders differ in how they read these; we have to see the instructions that they see. */
function requireReadable(source: string): void {
  if (/^\s*#\s*escape\s*=\s*[^\\\s]/im.test(source)) throw refused('the usual escape character', '# escape=');
  const [odd] = /[^\P{C}\t\r\n]|[\u2028\u2029]|\r(?!\n)/u.exec(source) ?? [];
  if (odd !== undefined) throw refused('plain text', odd);
  const [twice] = /.*\\\\[ \t]*$/m.exec(source) ?? [];
  if (twice !== undefined) throw refused('no line that ends in two backslashes', twice);
}

/** An image's triggers run in the build of a later stage, where nobody has looked at them. */
function requireHarmless({ keyword, rest, line }: Instruction): void {
  if (keyword === 'ONBUILD') throw refused('no ONBUILD', line);
  if (keyword !== 'ADD') return;
  // Variables, quotes and escapes could hide an address.
  const plain = /^\[("[^"]*"[\s,]*)*\]$/.test(rest)
    ? (rest.match(/"[^"]*"/g) ?? []).every((word) => isPlainPath(word.slice(1, -1)))
    : rest.split(/\s+/).every(isPlainPath);
  if (!plain) throw refused('ADD of plain paths in the context, and RUN to download', line);
}

const isPlainPath = (word: string): boolean => /^[\w./*?@%+,~=-]*$/.test(word) || /^--chown=[\w:.-]+$/.test(word);

function basesOf(found: readonly Instruction[]): readonly ImageName[] {
  const variables = new Map<string, string>();
  const stages = new Set<string>();
  const bases = new Map<string, ImageName>();
  const add = (image: string): void => {
    if (image !== 'scratch' && !stages.has(image.toLowerCase())) bases.set(image, imageName(image));
  };
  let number = 0;
  for (const { keyword, rest, line } of found) {
    if (keyword === 'ARG' && number === 0) remember(variables, rest);
    if (keyword === 'FROM') {
      const [image, as, name] = substitute(rest, variables)
        .split(/\s+/)
        .filter((word) => !word.startsWith('--'));
      if (image === undefined || !/^[\w][\w.:/@-]*$/.test(image)) throw refused('FROM an image by its name', line);
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

function remember(variables: Map<string, string>, rest: string): void {
  for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=("[^"]*"|'[^']*'|\S*)/g)) {
    variables.set(name, substitute(value.replaceAll(/^["']|["']$/g, ''), variables));
  }
}

const substitute = (text: string, variables: ReadonlyMap<string, string>): string =>
  text.replaceAll(
    /\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})/g,
    (_, plain: string | undefined, braced: string | undefined, otherwise: string | undefined) =>
      variables.get(plain ?? braced ?? '') ?? otherwise ?? '',
  );

function refused(expected: string, line: string): TemperFailure {
  const got = line.length > shownLength ? `${line.slice(0, shownLength)}…` : line;
  const todo = 'build the image and name it: as environment.docker_image in task.toml, or as ?image= of a data set';
  return new TemperFailure(
    'UnsupportedTask',
    `environment/Dockerfile: expected ${expected}, got ${JSON.stringify(got)}; ${todo}`,
  );
}
