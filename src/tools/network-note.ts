/** Recognises commands that failed because the sandbox has no network, so that the result can say what to do. */

import type { Ended } from './process.ts'

/** What common programs say when a name cannot be looked up or nothing can be reached. */
const complaints = new RegExp(
  [
    'could not resolve (host|proxy)',
    'temporary failure in name resolution',
    'name or service not known',
    'network is unreachable',
    'no address associated with hostname',
    'failed to lookup address',
    'unable to resolve host',
    'dns error',
    'no such host',
    'EAI_AGAIN|ENETUNREACH|ENOTFOUND|EAI_NONAME',
    'server misbehaving',
    'unable to (connect|access) .{0,200}(proxy|https?:)',
    'is not one of the hosts that this command was given',
  ].join('|'),
  'i',
)

export const networkNote =
  'this command had no network, except to the hosts that it was given; name the hosts it needs in "network" (which asks the operator), or do the work without it'

/** What git says in the sandbox, where it has neither the network nor the user's credentials. */
const gitComplaints =
  /fatal: unable to access '|fatal: could not read Username for|fatal: Authentication failed for|fatal: Could not read from remote repository/

export const gitNote =
  'git reaches a server with the user\'s credentials only by "git push", "git fetch" or "git pull" with the name of a remote, each as a command of its own: no script, no pipe, no redirection'

/** @returns the note for a failed command of a sandbox whose output shows such an error */
export function missingNetwork(ended: Ended, output: string): string | undefined {
  if (!ended.ok || ended.code === 0 || ended.sandbox === undefined || ended.sandbox === 'none') return undefined
  const notes = [...(complaints.test(output) ? [networkNote] : []), ...(gitComplaints.test(output) ? [gitNote] : [])]
  return notes.length === 0 ? undefined : notes.join('; ')
}
