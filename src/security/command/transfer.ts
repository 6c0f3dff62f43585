/** Defines what is known about a repository before a transfer, and the analysed transfer. */

import type { Refusal } from '../rules.ts'
import type { TransferOperation } from './plain-git.ts'

/** `key` is as `git config --list` prints it. */
export type GitSetting = { readonly key: string; readonly value: string | undefined }

/** `shown` is the address without user name and password. */
export type RemoteAddress = {
  readonly url: string
  readonly protocol: 'https' | 'http' | 'ssh'
  readonly host: string
  readonly port: number
  readonly shown: string
}

/** The facts that the files of a repository show. All paths are absolute. */
export type RepositoryFacts = {
  /** The folder of its work tree, and the folder of its data; `common` is another one only for a linked worktree. */
  readonly folder: string
  readonly git: string
  readonly common: string
  /** Its data lie in the workspace, or belong to it, so a command on a private view can change them. */
  readonly inside: boolean
  readonly local: readonly GitSetting[]
  /** The settings of the user and of the machine. */
  readonly user: readonly GitSetting[]
  /** The current branch, without refs/heads/; absent: HEAD is detached. */
  readonly branch?: string
  /** The commit of HEAD; absent: there is none yet. */
  readonly head?: string
  /** Object ids by full name. */
  readonly refs: ReadonlyMap<string, string>
}

/** @returns undefined where no repository is. Must not start git. */
export type ReadRepository = (cwd: string, folders: readonly string[]) => Promise<RepositoryFacts | undefined>

/** The analysed transfer, as part of a plan. */
export type Transfer = {
  readonly operation: TransferOperation
  readonly remote: string
  /** Exactly the address that git will use; it may hold a password, so only `shown` is for people. */
  readonly url: string
  readonly shown: string
  readonly protocol: RemoteAddress['protocol']
  readonly host: string
  readonly port: number
  readonly listed: boolean
  /** A push that replaces or deletes what is there. */
  readonly rewrites: boolean
  readonly repository: Pick<RepositoryFacts, 'folder' | 'git' | 'common' | 'inside'>
  /** Settings for the separate repository, besides the address. */
  readonly settings: readonly (readonly [key: string, value: string])[]
  /** The arguments of `git` outside the sandbox. */
  readonly words: readonly string[]
  /** Git commands that follow in the private view. */
  readonly after: readonly (readonly string[])[]
  /** Describes the transfer in a question. */
  readonly says: string
}

/** The effect of a transfer on references. */
export type TransferredRefs = ({ readonly ok: true } & Pick<Transfer, 'says' | 'rewrites' | 'settings' | 'words' | 'after'>) | Refusal

export type TransferVerdict = { readonly ok: true; readonly transfer: Transfer } | Refusal

/** The name of the remote in the separate repository; no settings of the user contain it. */
export const ownRemote = 'braidclaw'
