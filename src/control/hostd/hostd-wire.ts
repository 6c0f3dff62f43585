/** Defines the protocol of hostd's socket: one JSON object a line in both directions; replies carry the id of their request and come in any order. */

import { z } from 'zod'

/** The longest line that hostd reads, in bytes. */
export const longestRequest = 65_536
/** The longest line that a client reads: an output of 1 MiB, with every byte escaped. */
export const longestReply = 8_388_608

export const risks = ['low', 'medium', 'high'] as const
export type Risk = (typeof risks)[number]

/** Says that an operator approved exactly this operation with these parameters. Counts only from a peer in `control_uids`, once. */
export const approvalProof = z.strictObject({
  approval_id: z.string().min(1).max(64),
  /** SHA-256 as in `approvalFor`. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  approved_by: z.string().min(1).max(200),
  /** Holds when the control plane used the approval up, ISO 8601. */
  used_at: z.iso.datetime(),
})
export type ApprovalProof = z.infer<typeof approvalProof>

export const hostdRequest = z.strictObject({
  id: z.union([z.string().max(64), z.int()]).default(''),
  op: z.string().min(1).max(64),
  params: z.record(z.string().max(64), z.unknown()).default({}),
  token: z.optional(z.string().max(512)),
  approval: z.optional(approvalProof),
  /** Asks hostd only to check operation and parameters, before an operator decides about the call; nothing runs. */
  check: z.optional(z.literal(true)),
  /** Names the caller of the control plane, for the receipt. */
  caller: z.optional(z.string().max(200)),
})
export type HostdRequest = z.infer<typeof hostdRequest>

export const hostdErrors = [
  'bad_request',
  'forbidden',
  'unknown_op',
  'unavailable',
  'bad_params',
  'approval_required',
  'approval_refused',
  'too_many',
  'too_large',
  'timeout',
  'failed',
  'stopped',
  'no_receipt',
] as const
export type HostdError = { readonly code: (typeof hostdErrors)[number]; readonly message: string }

/** `ok` is true only for exit code 0. `output` holds stdout and stderr in the order in which the program wrote them. */
export const hostdReply = z.object({
  id: z.union([z.string(), z.int()]),
  ok: z.boolean(),
  output: z.string(),
  exitCode: z.nullable(z.int()),
  truncated: z.optional(z.literal(true)),
  receipt: z.optional(z.string()),
  error: z.optional(z.object({ code: z.enum(hostdErrors), message: z.string() })),
})
export type HostdReply = z.infer<typeof hostdReply>

/** Describes one operation as `hostd list` shows it. `unavailable` says why a call would be refused. */
export const operationRow = z.object({
  op: z.string(),
  about: z.string(),
  platforms: z.array(z.string()),
  risk: z.enum(risks),
  approval: z.boolean(),
  /** The shared secret may call it, whatever its risk. */
  compat: z.optional(z.literal(true)),
  /** Each parameter in words: `integer 1 to 500`. */
  params: z.record(z.string(), z.string()),
  timeout_s: z.number(),
  available: z.boolean(),
  unavailable: z.optional(z.string()),
})
export type OperationRow = z.infer<typeof operationRow>

/** The one operation that every catalogue has: its output is the JSON of the rows. */
export const listOperation = 'hostd-list'
