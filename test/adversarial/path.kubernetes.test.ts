import { describe } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { pathSuite } from './path-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('path');
  const open = (stack: string) =>
    createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 });
  pathSuite({ kind: 'kubernetes', open, in: 'environment' });
});
