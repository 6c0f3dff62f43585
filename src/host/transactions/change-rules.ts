/** Asks the operator's rules about the changes of commands. The parser of rules is loaded only where there is a folder of rules. */

import type { Change } from '../../runtime/changes.ts'
import type { Proposal } from '../../runtime/event.ts'
import { type RuleOnChanges, rulesOnChanges } from '../../runtime/rules/rules-on-changes.ts'
import { hasRuleFolders, type RuleSetup } from '../setup/rules/rule-folders.ts'

/** The rules are those at the first question. Rejects when they cannot be understood. */
export function createChangeRules(setup: RuleSetup) {
  const state: { rules?: ReturnType<typeof load> } = {}
  return async (changes: readonly Change[], proposal?: Proposal): Promise<RuleOnChanges | undefined> => {
    state.rules ??= load(setup)
    return rulesOnChanges(await state.rules, changes, proposal)
  }
}

/** What is to be warned about was said when the run began. */
async function load(setup: RuleSetup) {
  if (!hasRuleFolders(setup)) return []
  const { rulesInForce } = await import('../setup/rules/operator-rules.ts')
  return rulesInForce({ ...setup, log: () => {} }).written
}
