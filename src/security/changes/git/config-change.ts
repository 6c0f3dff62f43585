/** Judges a changed file of git settings by its keys: which are different, and whether they may be. */

import type { ChangeView } from '../change-view.ts'
import type { Side } from '../review-context.ts'
import { type ConfigEntry, mostSettingsBytes, parseGitConfig } from './git-config.ts'

export type SettingsVerdict =
  | { readonly weight: 'deny' | 'person' | 'ask'; readonly why: string }
  /** The settings are the same: only comments, order of sections or mode differ. */
  | undefined

type SettingsChange = {
  readonly view: ChangeView
  readonly path: string
  readonly sub: string | undefined
  /** Judges a setting that depends on where it leads. */
  readonly isFine: (entry: ConfigEntry) => boolean
}

export function judgeSettings({ view, path, sub, isFine }: SettingsChange): SettingsVerdict {
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

type Allowed = readonly (readonly [key: RegExp, value: RegExp])[]

const flag = /^(?:|true|false|yes|no|on|off|0|1)$/i
/** http, https, ssh (as a URL or `user@host:path`) and files; never `helper::address`, nor a host that ssh would take for an option. */
const remote =
  /^(?:https?:\/\/[\w[][^\s\p{Cc}]*|ssh:\/\/(?:[\w.+][\w.+-]*@)?[\w[][\w.:\]-]*(?:\/\P{Cc}*)?|(?:[\w.+][\w.+-]*@)?\w[\w.-]*:(?!:|\/\/)[^:\p{Cc}]*|(?:file:\/\/\/|\.{0,2}\/|\w)[^:\p{Cc}]*|\.{1,2})$/u
const refs = /^[\w./*+][\w./*+@#-]*$/
const refspec = /^[+^]?[\w./*@#+-]+(?::[\w./*@#+-]+)?$/
const line = /^\P{Cc}*$/u
const remoteName = /^(?:\.|\w[\w./+-]*)$/
const plain = /^[\w.,:@/+* -]*$/

const harmless: Allowed = [
  [/^core\.repositoryformatversion$/, /^[01]$/],
  [/^core\.(?:filemode|bare|logallrefupdates|ignorecase|symlinks|precomposeunicode)$/, /^(?:|true|false|yes|no|on|off|0|1|always)$/i],
  [/^remote\..+\.url$/s, remote],
  [/^remote\..+\.fetch$/s, refspec],
  [/^branch\..+\.remote$/s, remoteName],
  [/^branch\..+\.merge$/s, refs],
  [/^branch\..+\.rebase$/s, /^(?:true|false|merges|interactive|m|i)$/],
  [/^user\.(?:name|email)$/, line],
]

const remoteMore: Allowed = [
  [/^remote\..+\.pushurl$/s, remote],
  [/^remote\..+\.push$/s, refspec],
  [/^remote\..+\.(?:mirror|prune|prunetags|tagopt|skipdefaultupdate|skipfetchall|promisor|partialclonefilter|followremotehead)$/s, plain],
  [/^(?:remotes\..+|remote\.pushdefault)$/s, remoteName],
]

const sparse: Allowed = [[/^(?:core\.sparsecheckout(?:cone)?|index\.sparse|extensions\.worktreeconfig)$/, flag]]

/** Lists what a plain git command may set besides, after a question: the settings that this sub-command exists for. */
const bySubCommand: { readonly [sub: string]: Allowed } = {
  init: [[/^(?:extensions\.(?:objectformat|refstorage)|core\.(?:repositoryformatversion|sharedrepository))$/, plain]],
  clone: [...remoteMore, ...sparse, [/^(?:extensions\.(?:partialclone|objectformat|refstorage)|submodule\.active)$/, plain]],
  remote: remoteMore,
  fetch: remoteMore,
  worktree: sparse,
  'sparse-checkout': sparse,
  submodule: [
    [/^submodule\..+\.url$/s, remote],
    [/^submodule\..+\.active$/s, flag],
    [/^submodule\.active$/, plain],
    [/^submodule\..+\.branch$/s, refs],
  ],
  branch: [
    [/^branch\..+\.pushremote$/s, remoteName],
    [/^branch\..+\.description$/s, line],
  ],
  config: [
    ...remoteMore,
    [/^(?:init\.defaultbranch|branch\.(?:sort|autosetupmerge|autosetuprebase))$/, plain],
    [/^branch\..+\.pushremote$/s, remoteName],
    [
      /^(?:pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags|parallel)|merge\.(?:ff|conflictstyle|renames))$/,
      plain,
    ],
    [/^(?:core\.(?:autocrlf|eol|safecrlf|quotepath|abbrev|compression|untrackedcache|preloadindex|whitespace)|i18n\.\w+)$/, plain],
    [/^(?:color|column|advice|log|status|diff|rerere|rebase|gc|pack|index|feature)\.\w+$/, plain],
    [/^color\.\w+\.\w+$/, plain],
    [
      /^(?:commit\.(?:gpgsign|verbose|cleanup)|tag\.(?:gpgsign|sort)|user\.(?:signingkey|useconfigonly)|submodule\.recurse|stash\.\w+|grep\.\w+)$/,
      plain,
    ],
  ],
}

/** Settings among those that name programs all the same. */
const programs = /^(?:diff\.external|gc\.recentobjectshook)$/

/** Lists the git settings that neither run a program nor send git elsewhere, each with the values it may have. */
function isHarmlessSetting({ key, value }: ConfigEntry): boolean {
  return isIn(harmless, key, value)
}

/** Tells whether a plain `git SUB` may set this after a question. */
function isSettingOf(sub: string, { key, value }: ConfigEntry): boolean {
  return Object.hasOwn(bySubCommand, sub) && !programs.test(key) && isIn(bySubCommand[sub] ?? [], key, value)
}

/** A name without a value means true. */
function isIn(allowed: Allowed, key: string, value = 'true'): boolean {
  return allowed.some(([name, values]) => name.test(key) && values.test(value))
}
