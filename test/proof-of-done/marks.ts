/** Marks the claims of an answer with known truth, as the runtime does with what it recorded. */

import { bindClaims } from '../../src/host/records/claims/bind-claims.ts'
import type { Fact } from '../../src/host/records/claims/contract.ts'
import { findClaims } from '../../src/host/records/claims/find-claims.ts'
import { programRuns } from '../../src/security/command/program-runs.ts'
import { type Mark, orderOf, type Row, readRows, score, scoreLine } from './score.ts'

export function marksOf(row: Row): readonly Mark[] {
  return bindClaims(findClaims(row.answer), factsOf(row))
}

function factsOf(row: Row): readonly Fact[] {
  const { commands, changes, reads, earlier } = row.facts
  return orderOf(row).flatMap((name, position): Fact[] => {
    const index = Number(name.slice(1))
    const when = { earlier: position < earlier }
    const command = name.startsWith('c') ? commands[index] : undefined
    if (command) return [{ ...command, type: 'command', text: command.command, runs: programRuns(command.command), ...when }]
    const change = name.startsWith('f') ? changes[index] : undefined
    if (change) return [{ ...change, type: 'change', text: change.path, runs: [], ...when }]
    return [{ type: 'read', text: reads[index] ?? '', runs: [], ...when }]
  })
}

if (import.meta.main) {
  for (const path of process.argv.slice(2)) {
    const result = score(readRows(await Bun.file(path).text(), path), marksOf)
    console.log([...result.differences, `${path}: ${scoreLine(result)}`].join('\n'))
  }
}
