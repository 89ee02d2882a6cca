import { cp, mkdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createPackages, packagedAgents } from '../agents/packages.ts';
import { createRuntime } from '../agents/runtime.ts';

// node infra/images/template-programs.ts DIRECTORY [AGENT…]
//
// Writes what a template of an E2B server holds at /opt/temper: Node with temper's own programs, and the packages of the named
// agents, each under its name and version. A sandbox whose template lacks the version that it needs is refused.

async function main([directory, ...agents]: readonly string[]): Promise<void> {
  const chosen = packagedAgents.filter((one) => agents.includes(one));
  if (directory === undefined || chosen.length < agents.length) {
    throw new Error(`expected DIRECTORY [AGENT…] with agents of ${packagedAgents.join(', ')}`);
  }
  const cacheDir = join(homedir(), '.cache/temper');
  const packages = createPackages({ cacheDir });
  const mounts = [createRuntime({ cacheDir }).prepare(), ...chosen.map((agent) => packages.prepare(agent))];
  await mkdir(directory, { recursive: true });
  for (const { source, program } of await Promise.all(mounts)) {
    const target = join(directory, `${program?.name}-${program?.version}`);
    if (await exists(target)) continue;
    await cp(source, target, { recursive: true, verbatimSymlinks: true });
    console.log(target);
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

await main(process.argv.slice(2));
