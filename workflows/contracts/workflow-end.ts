/** The reason why a workflow has no result. */
export interface WorkflowEnd {
  /** `refused`: its input was invalid, so that it never began. */
  readonly kind: 'cancelled' | 'terminated' | 'refused' | 'failed';
  /** Message of the first failure in the chain of causes. */
  readonly message: string;
}
