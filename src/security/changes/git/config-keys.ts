/** Lists the git settings that neither run a program nor send git elsewhere, each with the values it may have. */

import type { ConfigEntry } from './git-config.ts'

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

/** What a plain git command may set besides, after a question: the settings that this sub-command exists for. */
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

export function isHarmlessSetting({ key, value }: ConfigEntry): boolean {
  return isIn(harmless, key, value)
}

/** Whether a plain `git SUB` may set this after a question. */
export function isSettingOf(sub: string, { key, value }: ConfigEntry): boolean {
  return Object.hasOwn(bySubCommand, sub) && !programs.test(key) && isIn(bySubCommand[sub] ?? [], key, value)
}

/** A name without a value means true. */
function isIn(allowed: Allowed, key: string, value = 'true'): boolean {
  return allowed.some(([name, values]) => name.test(key) && values.test(value))
}
