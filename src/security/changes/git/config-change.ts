/** Judges a changed file of git settings by its keys: which are different, and whether they may be. */

import type { ChangeView } from '../change-view.ts'
import type { Side } from '../review-context.ts'
import { isHarmlessSetting, isSettingOf } from './config-keys.ts'
import { type ConfigEntry, parseGitConfig } from './git-config.ts'
import { mostSettingsBytes } from './git-settings.ts'

export type SettingsVerdict =
  | { readonly weight: 'deny' | 'person' | 'ask'; readonly why: string }
  /** The settings are the same: only comments, order of sections or mode differ. */
  | undefined

type Asked = {
  readonly view: ChangeView
  readonly path: string
  readonly sub: string | undefined
  /** Judges a setting that depends on where it leads. */
  readonly isFine: (entry: ConfigEntry) => boolean
}

export function judgeSettings({ view, path, sub, isFine }: Asked): SettingsVerdict {
  const [before, after] = [settingsOf(view, path, 'before'), settingsOf(view, path, 'after')]
  if (before === undefined || after === undefined) return { weight: 'deny', why: 'settings of git that are not understood' }
  const isOrdinary = (entry: ConfigEntry) => isHarmlessSetting(entry) || isFine(entry)
  const different = [...missingIn(after, before), ...missingIn(before, after)]
  const [odd] = changedRest(before, after, isOrdinary)
  if (odd === undefined) return different.length === 0 ? undefined : { weight: 'ask', why: `settings of git: ${named(different)}` }
  const [refused] = sub === undefined ? [odd] : changedRest(before, after, (entry) => isOrdinary(entry) || isSettingOf(sub, entry))
  if (refused) return { weight: 'deny', why: `settings of git that may run programs or redirect it: ${named([refused])}` }
  return { weight: 'person', why: `"git ${sub}" changes settings of git: ${named(different)}` }
}

function settingsOf(view: ChangeView, path: string, side: Side): readonly ConfigEntry[] | undefined {
  if (view.kind(path, side) === undefined) return []
  const text = view.text(path, side, mostSettingsBytes)
  return text === undefined ? undefined : parseGitConfig(text)
}

/** The entries that are neither the same in the same order nor allowed. */
function changedRest(
  before: readonly ConfigEntry[],
  after: readonly ConfigEntry[],
  isAllowed: (entry: ConfigEntry) => boolean,
): readonly ConfigEntry[] {
  const [was, is] = [before.filter((entry) => !isAllowed(entry)), after.filter((entry) => !isAllowed(entry))]
  if (JSON.stringify(was) === JSON.stringify(is)) return []
  const different = [...missingIn(is, was), ...missingIn(was, is)]
  return different.length > 0 ? different : is
}

function missingIn(entries: readonly ConfigEntry[], others: readonly ConfigEntry[]): readonly ConfigEntry[] {
  const there = new Set(entries.map((entry) => JSON.stringify(entry)))
  return others.filter((entry) => !there.has(JSON.stringify(entry)))
}

function named(entries: readonly ConfigEntry[]): string {
  const keys = [...new Set(entries.map(({ key }) => key))]
  return keys.slice(0, 5).join(', ') + (keys.length > 5 ? ', …' : '')
}
