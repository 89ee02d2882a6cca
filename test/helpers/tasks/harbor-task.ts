import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface HarborTaskFiles {
  /** The script that the agent `oracle` runs, with which a test can make an agent do anything. */
  readonly solve?: string;
  readonly test?: string;
  readonly toml?: string;
  /** Set-up commands that are added to the default task.toml. */
  readonly setup?: readonly string[];
  readonly workspace?: Readonly<Record<string, string>>;
  /** Other files, by their paths in the task. */
  readonly others?: Readonly<Record<string, string>>;
}

const toml = `version = "1.0"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 20.0
[environment]
docker_image = "temper-tasks:bookworm"
cpus = 1
memory_mb = 512
storage_mb = 256
`;

/** A test that passes when /workspace/answer.txt contains `right`. */
export const answerTest = `mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
[ "$(cat /workspace/answer.txt)" = right ] && echo 1 > /logs/verifier/reward.txt
exit 0
`;

/** Writes a task in Harbor layout below a root, and returns its address. */
export async function writeHarborTask(root: string, name: string, files: HarborTaskFiles): Promise<string> {
  const directory = join(root, name);
  const put = async (path: string, text: string): Promise<void> => {
    const target = join(directory, path);
    await mkdir(join(target, '..'), { recursive: true });
    await writeFile(target, text, { mode: 0o755 });
  };
  await put('task.toml', files.toml ?? `${toml}setup = ${JSON.stringify(files.setup ?? [])}\n`);
  await put('instruction.md', 'Write `right` into answer.txt.\n');
  await put('tests/test.sh', `#!/bin/bash\n${files.test ?? answerTest}`);
  await put('solution/solve.sh', `#!/bin/bash\n${files.solve ?? 'echo right > /workspace/answer.txt'}\n`);
  for (const [path, text] of Object.entries(files.workspace ?? { 'answer.txt': 'wrong\n' })) {
    await put(`environment/workspace/${path}`, text);
  }
  for (const [path, text] of Object.entries(files.others ?? {})) await put(path, text);
  return `harbor:${directory}`;
}
