/** Standard input where it could be read wrongly: a file that a shell has read in part, and what stands in it. */

import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFifos } from '../../src/service/fifo/fifo-folder.ts'
import { openLines } from '../../src/service/fifo/fifo-reader.ts'
import { folderOf } from '../support/daemon.ts'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'
import { home, refused, scripted } from '../support/turns.ts'

const echo = [{ text: '<{{last_user_message}}>' }]

describe('a file on stdin is read from where it stands', () => {
  test.each(['sh', 'bash', 'dash'].filter((name) => needs(name)))(
    'after a line that %s has read, and nothing is left behind',
    async (name) => {
      using at = home()
      at.file('in.txt', 'one\ntwo\nthree\n')
      const script = `${name} -c '{ read -r a; braidclaw "Q $a"; cat; } < in.txt'`
      expect(await shell(at, script, scripted(at, echo).env)).toEqual({ code: 0, stdout: '<Q one\n\ntwo\nthree>\n', stderr: '' })
    },
  )

  test('a loop over the lines of a file gives the first call the rest, and ends', async () => {
    using at = home()
    at.file('list', 'one\ntwo\nthree\n')
    const loop = (input: string) => `while read -r m; do braidclaw agent -m "$m" ${input}; done < list`
    const { env } = scripted(at, echo)
    expect((await shell(at, loop(''), env)).stdout).toBe('<one\n\ntwo\nthree>\n')
    expect((await shell(at, loop('< /dev/null'), env)).stdout).toBe('<one>\n<two>\n<three>\n')
  })

  test('after a seek, at its end, shared by two calls, and opened for reading and writing', async () => {
    using at = home()
    at.file('in.txt', 'one\ntwo\nthree\n')
    const { env } = scripted(at, echo)
    const said = async (script: string) => (await shell(at, script, env)).stdout
    expect(await said('{ dd bs=1 skip=8 count=0 2>/dev/null; braidclaw Q; } < in.txt')).toBe('<Q\n\nthree>\n')
    expect(await said('{ cat >/dev/null; braidclaw Q; } < in.txt')).toBe('<Q>\n')
    expect(await said('{ braidclaw Q; braidclaw again; } < in.txt')).toBe('<Q\n\none\ntwo\nthree>\n<again>\n')
    expect(await said('{ read -r a; braidclaw Q; } <> in.txt')).toBe('<Q\n\ntwo\nthree>\n')
  })

  test('a pipe, /dev/null and a closed stdin are as they were', async () => {
    using at = home()
    const { env } = scripted(at, echo)
    const said = async (script: string) => (await shell(at, script, env)).stdout
    expect(await said('printf "one\\ntwo\\n" | { read -r a; braidclaw Q; }')).toBe('<Q\n\ntwo>\n')
    expect(await said('braidclaw Q < /dev/null; braidclaw Q <&-')).toBe('<Q>\n<Q>\n')
  })

  test('what can only be written is refused with its reason', async () => {
    using at = home()
    const { code, stdout, stderr } = await shell(at, 'braidclaw Q 0> out.txt')
    refused({ code, stdout, stderr }, 1, 'stdin cannot be read (EBADF)')
  })

  test('session append, tool run and the lines of bridge interact', async () => {
    using at = home()
    at.file('in.txt', 'skipped\n{"path":"in.txt"}\n')
    const { stdout } = await shell(at, '{ read -r a; braidclaw tool run file_read --json -; } < in.txt')
    expect(stdout).toContain('skipped')
    await shell(at, '{ read -r a; braidclaw session append user; } < in.txt')
    expect((await at.run(['session', 'load'])).stdout).toEndWith('user: {"path":"in.txt"}\n')
    const dir = folderOf(at)
    await createFifos(dir)
    const stop = new AbortController()
    const asked = openLines(join(dir, 'interact_in'), { signal: stop.signal })
    at.file('lines', 'me\tfirst\nme\tsecond\n')
    const talking = at.start(['bridge', 'interact', '--fifo-dir', dir], {
      through: ['sh', '-c', '{ read -r a; exec "$@"; } < lines', 'sh'],
    })
    expect((await asked.next()).value).toEqual({ ok: true, text: 'me\tsecond' })
    stop.abort()
    process.kill(talking.pid, 'SIGTERM')
    await talking.result
  })

  test('the requests of control skills-server', async () => {
    using at = home()
    writeFileSync(join(at.workspace, 'library.yaml'), 'skills:\n  - name: one\n    summary: First\n    content: Text.\n')
    at.file('requests', 'not for it\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
    const script = '{ read -r a; braidclaw control skills-server --library library.yaml --agent sysadmin; } < requests'
    const { stdout, ...rest } = await shell(at, script)
    expect([JSON.parse(stdout), rest]).toEqual([
      { jsonrpc: '2.0', id: 7, result: {} },
      { code: 0, stderr: '' },
    ])
  })
})
