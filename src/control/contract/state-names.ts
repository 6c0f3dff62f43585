/** Names the states of tasks, runs and approvals. It imports nothing, so that a command that only needs the names starts without the shapes. */

export const priorities = ['low', 'medium', 'high', 'urgent'] as const
export const taskStatuses = [
  'pending',
  'running',
  'awaiting_approval',
  'budget_blocked',
  'blocked',
  'completed',
  'failed',
  'dead',
  'cancelled',
] as const
export const blockedReasons = ['in_doubt', 'dependency', 'operator'] as const
export const runStates = ['running', 'completed', 'failed', 'released', 'lost', 'cancelled', 'waiting'] as const
export const approvalStates = ['pending', 'approved', 'rejected', 'revise', 'expired', 'used', 'cancelled'] as const
