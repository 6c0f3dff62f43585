/** Checks the claims of an answer within a turn, and asks a model for further ones: for the turns whose settings want that. */

import { errorText } from '../../kit/errors.ts'
import type { CheckPort, Provider } from '../../runtime/port.ts'
import { modelClaims } from '../records/claims/model-claims.ts'
import { evidenceOf, marksOfRun } from '../records/claims/proof-of-run.ts'

type FurtherClaims = NonNullable<Parameters<typeof marksOfRun>[0]['further']>

/** Returns a function that asks the model for the claims of an answer, once for each answer. */
export function claimFinder(sideModel: () => Promise<Provider>, model: string): FurtherClaims {
  let last: { readonly answer: string; readonly claims: ReturnType<FurtherClaims> } | undefined
  return (answer) => {
    const ask = async () => modelClaims(answer, { provider: await sideModel(), model })
    if (last?.answer !== answer) last = { answer, claims: ask() }
    return last.claims
  }
}

export type ProofContext = Pick<Parameters<typeof marksOfRun>[0], 'setup' | 'journal' | 'conversationId' | 'further'> & {
  readonly checks: CheckPort | undefined
  readonly runId: () => string
}

/** Adds the check of the answer that the journal has as the run's last. It is not on the list, because it ends no wiggum run. */
export function withProof({ checks, runId, ...about }: ProofContext): CheckPort {
  return {
    list: checks?.list ?? [],
    async run(check, signal) {
      if (checks?.list.some(({ name }) => name === check.name)) return checks.run(check, signal)
      try {
        const marks = await marksOfRun({ ...about, runId: runId() })
        return { pass: marks.every(({ state }) => state === 'proved'), evidence: evidenceOf(marks) }
      } catch (error) {
        return { pass: false, evidence: `the claims could not be checked: ${errorText(error)}`, notRun: true }
      }
    },
  }
}
