/** Parameters reach the program as single elements, byte for byte, or the call is refused. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { echo, operation, place } from './hostd-daemon.ts'

const anyText = `params.x = { type = "text", pattern = '^.+$', most = 300 }`

describe('parameters', () => {
  const hostile = [
    'a b',
    '"; touch /tmp/owned; "',
    "'$(id)'",
    '`id`',
    '$HOME',
    '*',
    '/etc/*',
    '../../etc/passwd',
    'a;b|c&d>e<f',
    'x\\ny',
    '{x}',
    '{{x}}',
    '\u00e9\u4e2d\u{1f600}',
  ]

  test('with spaces, quotes, globs and shell words reach the program as one element, byte for byte', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(
        `[server]\nconcurrent = 16\n${operation('say', { argv: [at.script('echo', echo), 'a', '{x}', '--y={x}', 'z'], more: anyText })}`,
      ),
    )
    const replies = await hostd.ask(...hostile.map((x) => ({ op: 'say', params: { x } })))
    expect(replies.map(({ output }) => output)).toEqual(hostile.map((x) => `[a][${x}][--y=${x}][z]`))
  })

  test('with control characters, flags, too much or of another type are refused, and nothing runs', async () => {
    using at = place()
    const script = at.script('echo', `#!/bin/sh\ntouch ${at.folder}/ran\n`)
    const hostd = await at.start('--catalogue', at.catalogue(operation('say', { argv: [script, '{x}'], more: anyText })))
    const wrong = ['a\nb', 'a\0b', '\u001b[2J', 'a\ud800', '--force', '-', 'x'.repeat(301), '', 3, true, ['a'], { toString: 'x' }, null]
    const replies = await hostd.ask(...wrong.map((x) => ({ op: 'say', params: { x } })))
    expect(replies.map(({ ok, output, exitCode, error }) => ({ ok, output, exitCode, code: error?.code }))).toEqual(
      wrong.map(() => ({ ok: false, output: '', exitCode: null, code: 'bad_params' })),
    )
    expect(statSync(join(at.folder, 'ran'), { throwIfNoEntry: false })).toBeUndefined()
  })

  test('of paths stay in their folder and lead through no link; lists become one element each', async () => {
    using at = place()
    mkdirSync(join(at.folder, 'data/sub'), { recursive: true })
    writeFileSync(join(at.folder, 'data/sub/a b'), '')
    symlinkSync('/etc', join(at.folder, 'data/etc'))
    symlinkSync('/etc/passwd', join(at.folder, 'data/sub/link'))
    const more = `params.p = { type = "path", under = "${at.folder}/data", kind = "file" }\nparams.l = { type = "list", pattern = '^[a-z -]+$', optional = true }`
    const hostd = await at.start('--catalogue', at.catalogue(operation('say', { argv: [at.script('echo', echo), '{p}', '{l}'], more })))
    const asked = [
      'sub/a b',
      `${at.folder}/data/sub/a b`,
      '../data/sub/a b',
      'sub/../../../etc/passwd',
      'etc/passwd',
      'sub/link',
      '/etc/passwd',
      'sub',
      'none',
      `${at.folder}/database`,
    ]
    const replies = await hostd.ask(...asked.map((p) => ({ op: 'say', params: { p } })))
    const whole = `[${at.folder}/data/sub/a b]`
    expect(replies.map(({ output, error }) => error?.code ?? output)).toEqual([
      whole,
      whole,
      ...Array.from({ length: 8 }, () => 'bad_params'),
    ])
    const lists = await hostd.ask(...[['a b', 'c'], [], ['-x'], ['a\nb'], ['A']].map((l) => ({ op: 'say', params: { p: 'sub/a b', l } })))
    expect(lists.map(({ output, error }) => error?.code ?? output)).toEqual([
      `${whole}[a b][c]`,
      whole,
      'bad_params',
      'bad_params',
      'bad_params',
    ])
  })

  test('that are unknown, inherited or missing are refused with the right name', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(operation('say', { argv: [at.script('echo', echo), '{xyz}'], more: anyText.replace('x =', 'xyz =') })),
    )
    const replies = await hostd.ask(
      { op: 'say', params: { xzy: 'a' } },
      { op: 'say', params: { xyz: 'a', constructor: 'b' } },
      { op: 'say' },
      { op: 'sya' },
    )
    expect(replies.map(({ error }) => error?.message)).toEqual([
      expect.stringContaining('did you mean "xyz"'),
      expect.stringContaining('"constructor" is not a parameter'),
      expect.stringContaining('xyz is missing'),
      expect.stringContaining('unknown operation "sya"'),
    ])
  })
})
