import type { FeatureTask } from './feature-task.ts';

type Refused = NonNullable<FeatureTask['refused']>;

/*
 * What other kinds of sandbox than Docker's say of a task.
 */

export const needsRoot: Refused = {
  local: /user = "root".* local sandboxes have accounts without rights only; use Docker or Kubernetes/,
};

export const needsServices: Refused = {
  local: /has services beside its container \(.*keeper.*\), which local sandboxes cannot run; use a host with Docker/,
  kubernetes: /has services beside its container \(.*keeper.*\), which kubernetes sandboxes cannot run; use a host/,
};

export const needsEntrypoint: Refused = {
  local:
    /starts python3 \(entry point\), which local sandboxes cannot keep running for other commands; use a host with/,
};

export const needsProcesses: Refused = {
  local:
    /processes that the agent started \(keep_processes\), which end with their command in local sandboxes; use a host/,
};

export const needsTestImage: Refused = {
  local: /are in an image of their own \(verifier\.environment\), which local sandboxes cannot use; use Docker or/,
  kubernetes: /needs its Dockerfile built, which a cluster does not do; build and push the image/,
};

export const needsImage: Refused = {
  local: /needs the image temper-tasks:bookworm, which holds its files, but local sandboxes have no images; use a host/,
};

export const needsBuild: Refused = {
  local: /needs an image built from its environment\/Dockerfile, but local sandboxes have no images; use a host/,
  kubernetes: /needs its Dockerfile built, which a cluster does not do; build and push the image/,
};

export const needsGpus: Refused = {
  local: /needs GPUs \(environment\.gpus = 1\), which local sandboxes do not have; use a host with Docker and GPUs/,
  kubernetes:
    /needs GPUs \(environment\.gpus = 1\), which kubernetes sandboxes do not have; use a host with Docker and GPUs/,
};

export const needsHosts: Refused = {
  local: /names hosts \(here\.test, away\.test\), which local sandboxes cannot know; use Docker or Kubernetes/,
};

export const needsMemoryDirectories: Refused = {
  local:
    /has directories in memory \(\/dev\/shm of 128 MB, \/tmp, \/cache\), which local sandboxes do not have; use Docker/,
};
