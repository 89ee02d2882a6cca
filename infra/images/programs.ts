import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createPackages, packagedAgents } from '../agents/packages.ts';
import { createRuntime } from '../agents/runtime.ts';
import type { SandboxMount } from '../sandbox/sandbox.ts';

// node infra/setup/run.mjs infra/images/programs.ts IMAGE [AGENT…]
//
// Makes the image with the programs that sandboxes in a cluster mount: Node and temper's own programs, the keeper's tools, and
// the packages of the named agents, each under its name and version. A sandbox that needs another version is refused. It needs
// Docker and no registry; push the image to one that the cluster can pull from.

/** The keeper's tools: one that drops capabilities, and two for the first process of a sandbox whose agent is root. */
const toolNames = ['setpriv', 'env', 'sleep'];
/** Libraries of the tools beside those that the runtime has. */
const toolLibraries = /^libcap-ng\.so/;

async function main([image, ...agents]: readonly string[]): Promise<void> {
  const unknown = agents.find((agent) => !packagedAgents.some((known) => known === agent));
  if (image === undefined || unknown !== undefined) {
    throw new Error(`expected IMAGE [AGENT…] with agents of ${packagedAgents.join(', ')}, got ${unknown ?? 'nothing'}`);
  }
  const cacheDir = join(homedir(), '.cache/temper');
  const staging = await mkdtemp(join(tmpdir(), 'temper-programs-'));
  try {
    await addRuntime(staging, cacheDir);
    for (const agent of packagedAgents.filter((one) => agents.includes(one))) {
      await add(staging, await createPackages({ cacheDir }).prepare(agent));
    }
    await importImage(staging, image);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  console.log(`${image} is in the local Docker`);
}

/** Adds a program, and returns its name and version. */
async function add(staging: string, { source, program }: SandboxMount): Promise<string> {
  const name = `${program?.name}-${program?.version}`;
  await cp(source, join(staging, name), { recursive: true, verbatimSymlinks: true });
  return name;
}

async function addRuntime(staging: string, cacheDir: string): Promise<void> {
  const runtime = await createRuntime({ cacheDir }).prepare();
  const { source } = runtime;
  // The keeper needs no version: all of its program but Node comes from the host.
  await symlink(await add(staging, runtime), join(staging, 'temper-runtime'));
  const tools = join(staging, 'keeper');
  await mkdir(join(tools, 'lib'), { recursive: true });
  const libraries = await readdir(join(source, 'lib'));
  const loader = libraries.find((name) => name.startsWith('ld-linux-'));
  if (loader === undefined)
    throw new Error('expected a Node that is linked to glibc, got another; use that of nodejs.org');
  await symlink(`../temper-runtime/lib/${loader}`, join(tools, 'ld.so'));
  for (const name of toolNames) await addTool(tools, name);
}

/** Adds a program of this machine with the libraries that it needs. */
async function addTool(tools: string, name: string): Promise<void> {
  const program = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
  await cp(program, join(tools, name), { dereference: true });
  const linked = execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  for (const path of linked.filter((one) => toolLibraries.test(basename(one)))) {
    await cp(path, join(tools, 'lib', basename(path)), { dereference: true });
  }
}

/** Imports a directory as an image of one layer. */
async function importImage(directory: string, image: string): Promise<void> {
  const owner = ['--owner=0', '--group=0', '--mtime=@0', '--sort=name'];
  const tar = spawn('tar', ['-C', directory, ...owner, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const docker = spawn('docker', ['import', '-', image], { stdio: ['pipe', 'ignore', 'inherit'] });
  tar.stdout.pipe(docker.stdin);
  const [[packed], [imported]] = await Promise.all([once(tar, 'exit'), once(docker, 'exit')]);
  if (packed !== 0 || imported !== 0) throw new Error(`could not import ${image}; see the lines above`);
}

await main(process.argv.slice(2));
