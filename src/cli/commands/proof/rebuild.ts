/** `rebuild`: what is made from the journal, made anew from it, or held against it. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { brokenChain, checkChain } from '../../../host/integrity/receipt-check.ts'
import { withMemory } from '../../../host/integrity/recovery.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { Json } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

export type RebuildFlags = Json & { readonly check?: boolean }

/** Exit 0 when turns, conversations, search index and receipts are what the journal says, 9 when one is not. */
export async function rebuild(this: CliContext, { check = false, json = false }: RebuildFlags): Promise<void> {
  const setup = setUp(this)
  const { stdout } = this.process
  await withMemory(setup, async (memory) => {
    const projections = await memory.projections()
    const made = check ? undefined : projections.rebuild()
    if (made?.ok === false) throw new CliExit(exitCodes.integrity, `error: nothing was rebuilt: ${made.message}`)
    const found = projections.check()
    const { found: chain, joined } = checkChain({ setup, memory, deep: true })
    const receipts = chain.problems.map(brokenChain)[0] ?? joined[0]?.message
    const equal = found.equal && receipts === undefined
    if (json) stdout.write(`${JSON.stringify({ ...found, equal, rebuilt_anew: !check, receipts: receipts ?? 'agree' })}\n`)
    else {
      if (made?.ok) stdout.write(`rebuilt: ${count(made.turns, 'turn')} from the journal\n`)
      stdout.write(found.equal ? `equal: ${count(found.turns, 'turn')}, digest ${found.live}\n` : `differs: ${found.difference}\n`)
      stdout.write(receipts === undefined ? 'receipts agree with the journal\n' : `receipts and journal disagree: ${receipts}\n`)
    }
    if (!equal) throw new CliExit(exitCodes.integrity)
  })
}
