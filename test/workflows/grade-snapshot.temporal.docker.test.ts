import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { snapshotRollouts } from './grade-snapshot-suite.ts';

snapshotRollouts('docker', () => ({ provider: createDockerProvider({ stack: 'test-stack' }) }));
