/**
 * Labels what a call reads and sends, by plain rules, for the thread that asks before private data can leave together with foreign
 * instructions.
 */

import type { Label } from '../../runtime/event.ts'
import type { Policy } from '../policy.ts'
import { isUnder } from './path.ts'

/**
 * What the gate found out about a call. `carries`: the request could take data along; `foreign`: its answer is a text of others. `hosts`: what
 * its commands reach.
 */
export type Labelled = {
  readonly tool: string
  readonly paths: readonly { readonly path: string; readonly real?: string; readonly access: string }[]
  readonly requests: readonly { readonly carries: boolean; readonly foreign: boolean }[]
  readonly hosts: readonly string[]
}

type Given = Pick<Policy, 'workspace' | 'home' | 'channel'>

/** Files that usually hold keys, wherever they are; security.forbidden_reads refuses most of them unless the operator changed it. */
const secretName =
  /^(\.env(\..*)?|.*\.(pem|key|p12|pfx|kdbx)|id_[a-z0-9_]+|\.?netrc|\.pgpass|\.npmrc|\.pypirc|.*credentials.*|.*secrets?(\..*)?)$/i
const exampleName = /\.(example|sample|template|dist)$/i

/** Where package managers and people put what others wrote. */
const foreignFolder = /\/(node_modules|site-packages|vendor|third_party)\//

/** @returns undefined when the call does nothing of that kind, so that a journal of ordinary calls does not grow */
export function labelsOf({ tool, paths, requests, hosts }: Labelled, policy: Given): readonly Label[] | undefined {
  const reads = paths.flatMap(({ path, real, access }) => (access === 'read' ? [real ?? path] : []))
  const isAnswered = hosts.length > 0 || requests.some(({ foreign }) => foreign)
  const labels: Label[] = []
  if (reads.some((path) => isPrivate(path, policy)) || searchesAll(tool, policy)) labels.push('reads_private')
  if (isAnswered || reads.some((path) => isForeign(path, policy))) labels.push('reads_untrusted')
  if (hosts.length > 0 || requests.some(({ carries }) => carries)) labels.push('sends')
  return labels.length === 0 ? undefined : labels
}

function isPrivate(path: string, { workspace }: Given): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return !isUnder(path, workspace) || (secretName.test(name) && !exampleName.test(name))
}

/** Installed packages, and what lies neither in the workspace nor in the home folder. */
function isForeign(path: string, { workspace, home }: Given): boolean {
  return isUnder(path, workspace) ? foreignFolder.test(path.slice(workspace.length)) : !isUnder(path, home)
}

/** In a chat with a memory of its own memory_search finds only what the same person said there. */
function searchesAll(tool: string, { channel }: Given): boolean {
  return tool === 'memory_search' && channel?.memory !== 'own'
}
