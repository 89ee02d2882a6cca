import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { exists } from '../process/exists.ts';
import { touch } from '../process/touch.ts';
import type { SandboxMount } from '../sandbox/mount.ts';

/**
 * A directory that makes temper's own programs run in any image that has a shell: a Node binary, the libraries it needs, and
 * the programs. It is prepared once per host and version, and mounted read-only.
 *
 *     bin/node    the binary, which depends on C and C++ libraries
 *     bin/run     runs it with the libraries and the loader in lib/ instead of the image's own
 *     programs/   relay, bridge, mini and terminal as plain JavaScript, and the packages that they import
 */
export interface Runtime {
  /** Prepares the directory unless this host has it, and returns its mount. Concurrent callers and processes share one. */
  prepare(): Promise<SandboxMount>;
}

/** The mount point inside a sandbox. */
export const runtimeTarget = '/temper-runtime';

/** Returns the command that runs a script inside the sandbox. */
export const runScript = (script: string, args: readonly string[]): readonly string[] => [
  '/bin/sh',
  `${runtimeTarget}/bin/run`,
  script,
  ...args,
];
export const runProgram = (program: Program, args: readonly string[]): readonly string[] =>
  runScript(programEntry(program), args);
export const programEntry = (program: Program): string => `${runtimeTarget}/programs/${program}/main.js`;

/** Packages from npm that programs import. None of them depends on another one, and each is a single file beside its manifest. */
const imported = ['@xterm/headless', '@xterm/addon-unicode11'] as const;
const programs = ['relay', 'bridge', 'mini', 'terminal'] as const;
export type Program = (typeof programs)[number];

/** Version of the directory's layout; raise it with every change of the layout. */
const layout = 3;
/** Libraries that the Node binary links to. */
const needed = /^(?:ld-linux-.*|lib(?:c|m|dl|pthread|stdc\+\+|gcc_s|atomic)\.so\..*)$/;

export function createRuntime({ cacheDir }: { readonly cacheDir: string }): Runtime {
  let prepared: Promise<SandboxMount> | undefined;
  return {
    async prepare() {
      // Retention removes a runtime that was not used for long.
      if (prepared !== undefined && !(await touch((await prepared).source))) prepared = undefined;
      prepared ??= prepareOnce(cacheDir).catch((error: unknown) => {
        prepared = undefined;
        throw error;
      });
      return prepared;
    },
  };
}

/** Names the directory after its content, and renames it into place so that a partial one is never visible. */
async function prepareOnce(cacheDir: string): Promise<SandboxMount> {
  const files = new Map([...(await programFiles()), ...(await importedFiles())]);
  const { size, mtimeMs } = await stat(process.execPath);
  const content = JSON.stringify([layout, process.version, process.arch, process.execPath, size, mtimeMs, [...files]]);
  const source = join(cacheDir, `runtime-${digest(content)}`);
  // Unlike the directory's name, the version is the same on hosts that have their Node elsewhere.
  const version = `${process.version}-${process.arch}-${digest(JSON.stringify([layout, [...files]]))}`;
  const program = { name: 'temper-runtime', version };
  const mount = { source, target: runtimeTarget, readOnly: true, program } as const;
  if (await touch(source)) return mount;
  const temporary = `${source}.${randomBytes(4).toString('hex')}`;
  try {
    await fill(temporary, files);
    await rename(temporary, source);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another process may have been faster; the content is the same.
    if (!(await exists(source))) throw error;
  }
  return mount;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

async function fill(directory: string, files: ReadonlyMap<string, string>): Promise<void> {
  const folders = new Set([...files.keys()].map((path) => join('programs', dirname(path))));
  for (const folder of ['bin', 'lib', ...folders]) {
    await mkdir(join(directory, folder), { recursive: true, mode: 0o755 });
  }
  await linkOrCopy(process.execPath, join(directory, 'bin/node'));
  const libraries = await sharedLibraries();
  for (const path of libraries) await copyFile(path, join(directory, 'lib', soname(path)), constants.COPYFILE_FICLONE);
  const loader = libraries.map(soname).find((name) => name.startsWith('ld-linux-'));
  const lib = `${runtimeTarget}/lib`;
  const start = loader === undefined ? 'exec' : `exec ${lib}/${loader} --library-path ${lib}`;
  await writeFile(join(directory, 'bin/run'), `#!/bin/sh\n${start} ${runtimeTarget}/bin/node "$@"\n`, { mode: 0o755 });
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n');
  for (const [path, text] of files) await writeFile(join(directory, 'programs', path), text);
}

/** Hard-links where possible: the binary is larger than 100 MB. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
}

/** Paths of the libraries loaded by this process; empty without /proc, and then the image's own libraries are used. */
async function sharedLibraries(): Promise<readonly string[]> {
  const maps = await readFile('/proc/self/maps', 'utf8').catch(() => '');
  const paths = new Set(maps.split('\n').map((line) => line.slice(line.indexOf('/')).trim()));
  return [...paths].filter((path) => needed.test(basename(path)));
}

/** The name under which the loader looks for a library: `libstdc++.so.6` for `libstdc++.so.6.0.30`. */
const soname = (path: string): string => basename(path).replace(/(\.so\.\d+)[.\d]*$/, '$1');

/**
 * Returns the programs as JavaScript, by path. In a checkout the sources are TypeScript, whose types are stripped here; a package
 * has the same text, so that a host and an image of programs of one version agree, whichever of the two made them.
 */
export async function programFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const program of programs) {
    const directory = join(import.meta.dirname, program);
    for (const name of (await readdir(directory)).sort()) {
      if (!/(?<!\.d)\.[tj]s$/.test(name)) continue;
      const source = await readFile(join(directory, name), 'utf8');
      files.set(`${program}/${name.replace(/\.ts$/, '.js')}`, name.endsWith('.ts') ? toJavaScript(source) : source);
    }
  }
  return files;
}

const manifest = z.looseObject({ main: z.string() });

/** Returns the packages that programs import, by path below `programs`. */
async function importedFiles(): Promise<ReadonlyMap<string, string>> {
  const { resolve } = createRequire(import.meta.url);
  const files = new Map<string, string>();
  for (const name of imported) {
    const path = resolve(`${name}/package.json`);
    const text = await readFile(path, 'utf8');
    const { main } = manifest.parse(JSON.parse(text));
    files.set(`node_modules/${name}/package.json`, text);
    files.set(`node_modules/${name}/${main}`, await readFile(join(dirname(path), main), 'utf8'));
  }
  return files;
}

const toJavaScript = (source: string): string =>
  stripTypeScriptTypes(source).replaceAll(/((?:from |import\()'\.{1,2}\/[^']*)\.ts'/g, "$1.js'");
