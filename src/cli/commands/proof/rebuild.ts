/** Implements `rebuild`: it rebuilds all data derived from the journal, or compares that data with the journal. */

import { withMemory } from '../../../host/open/open-records.ts'
import { brokenChain, checkChain } from '../../../host/records/integrity/receipt-check.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { progressOn } from '../../progress-line.ts'

const flags = {
  check: { type: 'boolean', about: 'Only compare; change nothing (exit 9 when something differs)' },
  ...jsonFlag,
} as const satisfies Flags

/** Exit code 0 when turns, conversations, search index and receipts match the journal, 9 when one does not. */
export const rebuild = {
  flags: flags,
  examples: [['--check', 'prove that they are what the journal says']],
  exits: [9],
  async run(context, { check = false, json = false }) {
    const setup = loadSetup(context)
    const { stdout } = context.process
    const [rebuilding, checking] = [progressOn(context, 'rebuilding'), progressOn(context, 'checking')]
    await withMemory(setup, async (memory) => {
      const projections = await memory.projections()
      const made = check ? undefined : projections.rebuild(rebuilding)
      rebuilding(1)
      if (made?.ok === false) throw new CliExit(exitCodes.integrity, `error: nothing was rebuilt: ${made.message}`)
      const mended = check ? undefined : projections.files.rebuild()
      const found = projections.check(checking)
      checking(1)
      const files = projections.files.check()
      const { found: chain, joined } = checkChain({ setup, memory, deep: true })
      const receipts = chain.problems.map(brokenChain)[0] ?? joined[0]?.message
      const equal = found.equal && files.difference === undefined && receipts === undefined
      if (json)
        stdout.write(`${JSON.stringify({ ...found, equal, rebuilt_anew: !check, files, ...mended, receipts: receipts ?? 'agree' })}\n`)
      else {
        if (made?.ok) stdout.write(`rebuilt: ${count(made.turns, 'turn')} from the journal\n`)
        stdout.write(found.equal ? `equal: ${count(found.turns, 'turn')}, digest ${found.live}\n` : `differs: ${found.difference}\n`)
        for (const path of mended?.written ?? []) stdout.write(`rebuilt: ${path}\n`)
        for (const what of mended?.lost ?? []) stdout.write(`not brought back: ${what}\n`)
        if (files.difference !== undefined) stdout.write(`differs: ${files.difference}\n`)
        else if (files.files > 0) stdout.write(`${count(files.files, 'file')} of agents agree with the journal${later(files.untaken)}\n`)
        stdout.write(receipts === undefined ? 'receipts agree with the journal\n' : `receipts and journal disagree: ${receipts}\n`)
      }
      if (!equal) throw new CliExit(exitCodes.integrity)
    })
  },
} as const satisfies Command<typeof flags>

function later(untaken: number): string {
  return untaken === 0 ? '' : `; the next turn takes in ${count(untaken, 'line')} of other programs`
}
