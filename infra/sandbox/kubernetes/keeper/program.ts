import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { keeperId } from '../../shell/accounts.ts';
import { rootCapabilities } from '../../shell/root-capabilities.ts';
import { keeperDirectory } from '../../shell/scripts.ts';

/** The directory of the image with agents' programs, Node and the keeper's tools in a Pod, mounted read-only. */
export const programsDirectory = '/temper-programs';
/** The file that tells that a sandbox is set up. */
export const readyFile = `${keeperDirectory}/.ready`;

const runtime = `${programsDirectory}/temper-runtime`;
const tools = `${programsDirectory}/keeper`;
const loader = `${tools}/ld.so`;
/** The program that drops capabilities. It and Node run with their own loader and libraries, so that any image will do. */
export const drop = runTool('setpriv');
/** Starts a program without a variable of the image, which could have it load what an agent has written. */
export const clean = [...runTool('env'), '-i'];
/** The program that does nothing until it is killed, and has the kernel wait for the processes that it inherits. */
export const idle = [...clean, '--ignore-signal=CHLD', ...runTool('sleep'), 'infinity'];
/** Node with its own loader and libraries. */
export const node = [loader, '--library-path', `${runtime}/lib`, `${runtime}/bin/node`] as const;
const heapMb = 48;

/** The keeper's capabilities: to become an account, to end its processes, and to take all of this from what it starts. */
const own = ['SETUID', 'SETGID', 'SETPCAP', 'KILL', 'CHOWN'] as const;

/** Returns the capabilities of a Pod's container. Those of root, where the task asks for it, come on top of the keeper's. */
export const keeperCapabilities = (root: boolean): readonly string[] =>
  root ? [...new Set([...own, ...rootCapabilities])] : own;

/** The file with the host that has adopted a sandbox. */
const holderFile = `${keeperDirectory}/.holder`;
let program: Promise<string> | undefined;

/** Returns the keeper's program. */
export function keeperProgram(): Promise<string> {
  program ??= source();
  return program;
}

/** Returns the command that an exec in a Pod starts as root: the keeper, under its own uid, with the capabilities it needs. */
export async function keeperCommand(root: boolean): Promise<readonly string[]> {
  const kept = ['-all', ...keeperCapabilities(root).map((one) => `+${one.toLowerCase()}`)].join(',');
  return [
    ...clean,
    ...drop,
    `--reuid=${keeperId}`,
    `--regid=${keeperId}`,
    '--clear-groups',
    `--inh-caps=${kept}`,
    `--ambient-caps=${kept}`,
    ...node,
    `--max-old-space-size=${heapMb}`,
    '--input-type=module',
    '--eval',
    await keeperProgram(),
    JSON.stringify({ ready: readyFile, drop, holder: holderFile }),
  ];
}

/** Returns how a tool of the image is started. It has its own loader and libraries, so that any image will do. */
function runTool(name: string): readonly string[] {
  return [loader, '--library-path', `${tools}/lib:${runtime}/lib`, `${tools}/${name}`];
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
