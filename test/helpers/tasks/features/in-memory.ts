import { environment } from '../task-steps.ts';
import { type FeatureTask, rewarding } from './feature-task.ts';
import { needsMemoryDirectories } from './where-refused.ts';

const compose = `services:
  main:
    tmpfs: [/tmp, "/cache:size=8m,mode=755"]
    shm_size: 128m
`;

/** Prints the sizes of the places in memory in MB, and the type of one. */
const sizes = 'df -m --output=size /cache /dev/shm /tmp | tail -n 3 | tr -d " " | paste -sd,; stat -f -c %T /cache';
const kept = 'sizes=$(cat answer.txt); [ "$sizes" = "$(printf "8,128,512\\ntmpfs")" ]';

/** Returns a task whose agent leaves a file in memory, of which its tests expect what their sandbox has. */
const inMemory = (grading: string, expected: string): FeatureTask => ({
  files: {
    toml: `${environment}[grading]\nsandbox = "${grading}"\n`,
    others: { 'environment/docker-compose.yaml': compose },
    solve: `echo mine >/cache/kept && echo mine >/tmp/kept && echo mine >~/kept && { ${sizes}; } >answer.txt`,
    test: rewarding(`${kept} && [ "$(${sizes})" = "$sizes" ] && ${expected}`),
  },
  refused: needsMemoryDirectories,
});

/** One task for each way in which tests get an agent's work. */
export const inMemoryFeatures: Readonly<Record<string, FeatureTask>> = {
  'directories in memory, and tests that get the diff': inMemory('fresh', '[ ! -e /cache/kept ] && [ ! -e /tmp/kept ]'),
  'directories in memory, and tests that get all that the agent changed': inMemory(
    'snapshot',
    '[ ! -e /cache/kept ] && [ ! -e /tmp/kept ] && [ -e /home/agent/kept ]',
  ),
  "directories in memory, and tests in the agent's own sandbox": inMemory(
    'same',
    '[ -e /cache/kept ] && [ -e /tmp/kept ]',
  ),
};
