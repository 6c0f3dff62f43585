/** Stores what a person answered with "always" to the changes of a command, and finds it again. */

import type { Memory } from '../../memory/memory.ts'
import {
  type ChangeRule,
  changeRuleText,
  changeRuleTool,
  parseChangeRule,
  tellChangeRule,
} from '../../security/changes/standing-changes.ts'

export type StandingAnswers = {
  rules(): readonly ChangeRule[]
  /** Called when changes ask: `rule` is what "always" would store for the change set of this digest. */
  offer(digest: string, rule: ChangeRule): void
  /** Stores the offered rule. @returns what is applied from now on; undefined when none was offered for this digest */
  accept(digest: string): string | undefined
}

export function createStandingAnswers({ approvals }: Pick<Memory, 'approvals'>): StandingAnswers {
  const offered = new Map<string, ChangeRule>()
  return {
    rules: () => approvals.rules().flatMap(({ tool, scope }) => (tool === changeRuleTool ? (parseChangeRule(scope) ?? []) : [])),
    offer: (digest, rule) => void offered.set(digest, rule),
    accept(digest) {
      const rule = offered.get(digest)
      if (rule === undefined) return undefined
      approvals.addRule({ tool: changeRuleTool, scope: changeRuleText(rule), by: 'terminal' })
      return `always applied from now on: ${tellChangeRule(rule)}`
    },
  }
}
