import { homedir } from 'node:os';
import { join } from 'node:path';
import { packagedAgents } from '../agents/packages.ts';
import { writePrograms } from '../agents/write-programs.ts';

// node infra/setup/run.mjs infra/images/template-programs.ts DIRECTORY [AGENT…]
//
// Writes what a template of an E2B server holds at /opt/temper, for servers whose templates are built in another way than by
// `temper e2b template`. A sandbox whose template lacks the version that it needs is refused.

async function main([directory, ...agents]: readonly string[]): Promise<void> {
  const chosen = packagedAgents.filter((one) => agents.includes(one));
  if (directory === undefined || chosen.length < agents.length) {
    throw new Error(`expected DIRECTORY [AGENT…] with agents of ${packagedAgents.join(', ')}`);
  }
  const made = await writePrograms(directory, chosen, join(homedir(), '.cache/temper'));
  for (const path of made) console.log(path);
}

await main(process.argv.slice(2));
