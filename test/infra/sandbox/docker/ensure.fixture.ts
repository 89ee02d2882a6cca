// A worker process that a test kills while it makes a sandbox, whose spec is its argument.
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';

const spec: SandboxSpec = JSON.parse(process.argv[2] ?? '');
await createDockerProvider({ stack: spec.labels.stack }).ensure(spec, new AbortController().signal);
