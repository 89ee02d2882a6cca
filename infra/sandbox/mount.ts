/** A program that sandboxes need beyond their image, such as an agent. One name and version do the same on any host. */
export interface MountedProgram {
  readonly name: string;
  readonly version: string;
}

/** A host directory that appears inside, always read-only, such as an agent's runtime. */
export interface SandboxMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: true;
  /** The directory's content, by which a kind of sandbox that can't mount host directories finds the same elsewhere. */
  readonly program?: MountedProgram;
}

/** Joins lists of mounts. Of those with one target, the first one counts. */
export const mergeMounts = (...lists: readonly (readonly SandboxMount[])[]): readonly SandboxMount[] =>
  [
    ...new Map(
      lists
        .flat()
        .toReversed()
        .map((mount) => [mount.target, mount]),
    ).values(),
  ].toReversed();
