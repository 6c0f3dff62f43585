/** Checks the files that a stopped rebase, cherry-pick or revert goes on with: they must not tell git to run a program. */

import { parseGitConfig } from './git-config.ts'

const verbs = new Set('pick p reword r edit e squash s fixup f drop d label l reset t merge m update-ref u break b noop revert'.split(' '))

/** @returns whether every line is a comment, or begins with a word that runs nothing */
export function isHarmlessTodo(text: string): boolean {
  return text.split('\n').every((line) => {
    const trimmed = line.trim()
    return trimmed === '' || trimmed.startsWith('#') || verbs.has(/^[a-z-]+(?=\s|$)/.exec(trimmed)?.[0] ?? '')
  })
}

const strategies = new Set(['', 'ort', 'recursive', 'resolve', 'octopus', 'ours', 'subtree'])

/** Any other name is a program, `git-merge-NAME`, and may even be a path. */
export function isKnownStrategy(name: string): boolean {
  return strategies.has(name.trim())
}

/** The options of a stopped cherry-pick or revert are written like settings. */
export function hasKnownStrategies(options: string): boolean {
  const entries = parseGitConfig(options)
  return entries?.every(({ key, value = '' }) => key !== 'options.strategy' || isKnownStrategy(value)) ?? false
}
