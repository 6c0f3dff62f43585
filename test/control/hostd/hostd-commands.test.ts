/** `hostd check` and `hostd list`, and the command line of hostd itself. */

import { expect, test } from 'bun:test'
import { z } from 'zod'
import { echo, operation, place } from './hostd-daemon.ts'

const rows = z.array(z.looseObject({ op: z.string(), available: z.boolean() }))

test('check prints every problem by line and field, and hostd does not start with one', async () => {
  using at = place()
  const bad = at.catalogue('[server]\nuids = 1\n[operations.a]\nabout = "A"\nrisk = "none"\nargv = ["ls"]\n')
  const { code, stdout } = await at.nest.run(['hostd', 'check', bad])
  expect({
    code,
    lines: stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(`${bad}:`, '')),
  }).toEqual({
    code: 1,
    lines: [
      '2: server.uids is a list of whole numbers from 0 to 4294967294; got 1',
      '5: operations.a.risk is one of low, medium, high; got "none"',
      '6: operations.a.argv begins with the absolute path of a program, without parameters',
    ],
  })
  expect(JSON.parse((await at.nest.run(['hostd', 'check', bad, '--json'])).stdout)).toMatchObject({
    ok: false,
    problems: [{ line: 2, field: 'server.uids' }, {}, {}],
  })
  const started = await at.nest.run(['hostd', '--socket', at.socket, '--catalogue', bad])
  expect({ code: started.code, says: started.stderr.includes('5: operations.a.risk') }).toEqual({ code: 1, says: true })
  const good = await at.nest.run([
    'hostd',
    'check',
    at.catalogue(operation('a', { argv: ['/bin/true'] }) + operation('b', { argv: ['/none'] })),
  ])
  expect(good).toMatchObject({ code: 0, stdout: 'valid: 2 operations, 1 available here\n' })
})

test('list shows the operations of a file, of the running hostd, and else the built-in ones', async () => {
  using at = place()
  const catalogue = at.catalogue(
    operation('say', { argv: [at.script('echo', echo), '{n}'], more: 'params.n = { type = "int", min = 1, max = 5, default = 2 }' }),
  )
  const shown = await at.nest.run(['hostd', 'list', '--catalogue', catalogue])
  expect(shown.stdout).toMatch(/^say +low +a test\n +n: integer 1 to 5, default 2\n$/)
  expect(await at.nest.run(['hostd', 'list', '--socket', at.socket])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the socket "${at.socket}" does not exist`),
  })
  const none = await at.nest.run(['hostd', 'list', '--json'], { env: { CONTROLPLANE_HOSTD_SOCKET: at.socket } })
  const builtIn = rows.parse(JSON.parse(none.stdout))
  expect(builtIn.map(({ op }) => op)).toEqual(
    expect.arrayContaining(['bastille-list', 'bastille-cmd', 'zfs-snapshot', 'pf-status', 'unit-status', 'journal-tail']),
  )
  expect(builtIn.find(({ op }) => op === 'pf-status')).toMatchObject({ available: false, unavailable: 'it is for freebsd; this is linux' })
  expect(none.stderr).toContain('these are the built-in operations')
  await at.start('--catalogue', catalogue)
  const running = await at.nest.run(['hostd', 'list', '--socket', at.socket, '--json'])
  expect(rows.parse(JSON.parse(running.stdout)).map(({ op }) => op)).toEqual(['say'])
})

test('unknown groups and users, and switched-off receipts, are said before anything is opened', async () => {
  using at = place()
  const says = async (...words: readonly string[]) => at.nest.run(['hostd', '--socket', at.socket, ...words])
  expect(await says('--group', 'no-such')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('the group "no-such" does not exist in /etc/group'),
  })
  expect(await says('--control-user', 'no-such')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('the user "no-such" does not exist'),
  })
  at.nest.config('[receipts]\nenabled = false\n')
  expect(await says()).toMatchObject({ code: 1, stderr: expect.stringContaining('keeps a receipt of every attempt') })
})
