/** The cluster, namespace and properties of the Pods that are sandboxes. */
export interface KubernetesSettings {
  /** The namespace of the Pods. */
  readonly namespace: string;
  /** The image with the agents' programs, Node and the keeper's tools. */
  readonly programs: string;
  /** The share of its limits of CPU, memory and disk that a Pod reserves on its node. */
  readonly requests: number;
  /** The time that a Pod may wait for a node with room and for its image, before it counts as unavailable. */
  readonly scheduleSec: number;
  /** The largest number of Pods that this process creates at once. */
  readonly creates: number;
  /** The RuntimeClass, such as gVisor's or Kata's; null: that of the cluster. */
  readonly runtimeClass: string | null;
  /** Labels that the node of a Pod must have. */
  readonly nodeSelector: Readonly<Record<string, string>>;
}

/** The settings that have a default may be left out. */
export type KubernetesOptions = Pick<KubernetesSettings, 'namespace'> & Partial<KubernetesSettings>;

export const defaultKubernetesSettings: Omit<KubernetesSettings, 'namespace'> = {
  programs: 'temper-programs:latest',
  requests: 0.25,
  scheduleSec: 300,
  creates: 16,
  runtimeClass: null,
  nodeSelector: {},
};
