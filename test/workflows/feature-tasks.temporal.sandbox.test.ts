import { join } from 'node:path';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { featureTasks } from './feature-tasks-suite.ts';

featureTasks('local', (home) =>
  createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
);
