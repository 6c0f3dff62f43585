/** An answer that could not be written is no success; thrown away on purpose it is one. */

import { describe, expect, test } from 'bun:test'
import { call, home, refused, scripted } from '../support/turns.ts'

const through = (redirection: string) => ({ through: ['sh', '-c', `exec "$@" ${redirection}`, 'sh'] })
const replies = [{ text: 'The answer.' }]

describe('stdout that is closed', () => {
  test.each([
    [['agent', '-m', 'go']],
    [['agent', '--json', '-m', 'go']],
    [['agent', '--output-format', 'stream-json', '-m', 'go']],
    [['what is the answer?']],
    [['--json', 'what is the answer?']],
    [['config', 'show']],
    [['help', 'agent']],
  ])('%j ends with an error', async (args) => {
    using at = home()
    for (const redirection of ['>&-', '<&- >&-', '1</dev/null'])
      refused(await at.run(args, { ...scripted(at, replies), ...through(redirection) }), 1, 'error: stdout is not open for writing')
  })

  test('nothing more is done once the first word of the turn is lost', async () => {
    using at = home()
    const writes = { ...call('file_write', { path: 'late.txt', content: 'x' }), text: 'I shall write.' }
    const args = ['agent', '--approve-all-medium', '-m', 'go']
    refused(await at.run(args, { ...scripted(at, [writes, ...replies]), ...through('>&-') }), 1)
    expect(await Bun.file(`${at.workspace}/late.txt`).exists()).toBe(false)
  })

  test('a command that has nothing to say there does not miss it', async () => {
    using at = home()
    expect(await at.run(['session', 'append', 'user', 'hello'], through('>&-'))).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

test.each(['>/dev/null', '1<>/dev/null', '| true'])('%s is what somebody chose: no error', async (redirection) => {
  using at = home()
  for (const args of [['agent', '-m', 'go'], ['what is the answer?']]) {
    const { code, stderr } = await at.run(args, { ...scripted(at, replies), through: ['bash', '-c', `"$@" ${redirection}`, 'bash'] })
    expect([code, stderr.includes('error')]).toEqual([0, false])
  }
})
