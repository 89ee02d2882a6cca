import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { keeperId } from '../../shell/accounts.ts';
import { keeperDirectory } from '../../shell/scripts.ts';

/** The directory of the image with agents' programs, Node and the keeper's tools in a Pod, mounted read-only. */
export const programsDirectory = '/temper-programs';
/** The file that tells that a sandbox is set up. */
export const readyFile = `${keeperDirectory}/.ready`;

const runtime = `${programsDirectory}/temper-runtime`;
const tools = `${programsDirectory}/keeper`;
const loader = `${tools}/ld.so`;
/** The program that drops capabilities. It and Node run with their own loader and libraries, so that any image will do. */
export const drop = [loader, '--library-path', `${tools}/lib:${runtime}/lib`, `${tools}/setpriv`] as const;
/** Node with its own loader and libraries. */
export const node = [loader, '--library-path', `${runtime}/lib`, `${runtime}/bin/node`] as const;
const heapMb = 48;

/** The keeper's capabilities: to become an account, to end its processes, and to take all of this from what it starts. */
const kept = '+setuid,+setgid,+setpcap,+kill,+chown';

let command: Promise<readonly string[]> | undefined;

/** Returns the command that an exec in a Pod starts as root: the keeper, under its own uid, with the capabilities it needs. */
export function keeperCommand(): Promise<readonly string[]> {
  command ??= source().then((text) => [
    ...drop,
    `--reuid=${keeperId}`,
    `--regid=${keeperId}`,
    '--clear-groups',
    `--inh-caps=-all,${kept}`,
    `--ambient-caps=-all,${kept}`,
    ...node,
    `--max-old-space-size=${heapMb}`,
    '--input-type=module',
    '--eval',
    text,
    JSON.stringify({ ready: readyFile, drop }),
  ]);
  return command;
}

/** Returns the keeper's program as one text. It travels with the command, so that it always fits the host that sends it. */
async function source(): Promise<string> {
  const extension = extname(import.meta.filename);
  const texts = await Promise.all(
    ['frames', 'main'].map((name) => readFile(join(import.meta.dirname, name + extension), 'utf8')),
  );
  return texts
    .map((text) => (extension === '.ts' ? stripTypeScriptTypes(text) : text))
    .join('\n')
    .replaceAll(/^import [^;]* from '\.\/frames\.[jt]s';$/gm, '')
    .replaceAll(/^export /gm, '')
    .replaceAll(/^ *(\/\/|\/?\*).*$/gm, '')
    .replaceAll(/ {2,}/g, ' ')
    .replaceAll(/\n\s+/g, '\n');
}
