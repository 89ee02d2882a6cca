import { describe } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { featureTasks } from './feature-tasks-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('features');
  featureTasks('kubernetes', () =>
    createKubernetesProvider({ stack: 'test-stack', namespace, programs: programsImage, requests: 0.01 }),
  );
});
