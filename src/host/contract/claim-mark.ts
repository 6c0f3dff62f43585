/** Defines what is said of one claim of an answer: the host makes it, the gateway describes it, the page shows it. */

import { z } from 'zod'

/** A claim of an answer, and the fact that decided about it as a sentence without a full stop. `receipt` and `exit` are those of that call. */
export const claimMark = z.object({
  kind: z.enum(['tests', 'build', 'types', 'lint', 'clean', 'file', 'git', 'ran', 'installed', 'verified', 'done']),
  state: z.enum(['proved', 'stale', 'unproved', 'contradicted']),
  claim: z.string().describe('The part of the answer that makes the claim'),
  why: z.string().describe('The fact that decided'),
  receipt: z.string().optional(),
  exit: z.int().optional(),
})
export type ClaimMark = Readonly<z.infer<typeof claimMark>>
export type ClaimKind = ClaimMark['kind']
