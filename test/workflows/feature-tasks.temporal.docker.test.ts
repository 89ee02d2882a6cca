import { after } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { removeServiceImages } from '../helpers/tasks/service-tasks.ts';
import { featureTasks } from './feature-tasks-suite.ts';

featureTasks('docker', () => createDockerProvider({ stack: 'test-stack' }));
after(() => removeServiceImages());
