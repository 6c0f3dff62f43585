import { describe, expect, test } from 'bun:test'
import { gitNote, missingNetwork, networkNote } from './builtin/shell.ts'
import type { SpawnResult } from './process.ts'

const failed: SpawnResult = { ok: true, code: 6, leftBehind: false, sandbox: 'bubblewrap' }

/** Lists the lines that programs print in a sandbox without a network. */
const outputs = {
  curl: 'curl: (6) Could not resolve host: example.org',
  npm: 'npm error code EAI_AGAIN\nnpm error syscall getaddrinfo',
  pip: 'Failed to establish a new connection: [Errno -3] Temporary failure in name resolution',
  python: 'OSError: [Errno 101] Network is unreachable',
  node: 'Error: getaddrinfo ENOTFOUND example.org',
  cargo: "warning: spurious network error: [6] Couldn't resolve host name (Could not resolve host: index.crates.io)",
  go: 'dial tcp: lookup proxy.golang.org: no such host',
  wget: "wget: unable to resolve host address 'example.org'",
  uv: 'error: client error (Connect): dns error: failed to lookup address information',
  proxy: 'example.com:443 is not one of the hosts that this command was given',
}

describe('a command that failed without a network', () => {
  test.each(Object.entries(outputs))('is recognised: %s', (_, output) => expect(missingNetwork(failed, output)).toBe(networkNote))

  test('and without credentials, because git ran in the sandbox', () => {
    const unreached = "fatal: unable to access 'https://example.org/x/': Could not resolve host: example.org"
    expect(missingNetwork(failed, unreached)).toBe(`${networkNote}; ${gitNote}`)
    const unknown = "fatal: could not read Username for 'https://example.org': terminal prompts disabled"
    expect(missingNetwork(failed, unknown)).toBe(gitNote)
    expect(missingNetwork(failed, 'fatal: Could not read from remote repository.')).toBe(gitNote)
  })

  test('is not assumed of others', () => {
    expect(missingNetwork(failed, 'error: 3 tests failed')).toBeUndefined()
    expect(missingNetwork({ ...failed, code: 0 }, outputs.curl)).toBeUndefined()
    expect(missingNetwork({ ...failed, sandbox: 'none' }, outputs.curl)).toBeUndefined()
    expect(missingNetwork({ ok: false, message: outputs.curl }, outputs.curl)).toBeUndefined()
  })
})
