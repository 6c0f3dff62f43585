/** `doctor` on everything that belongs to a server: each line is broken once, and says what to do. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dashboardFindings } from '../../src/cli/commands/doctor/doctor-gateway.ts'
import { diskFindings } from '../../src/cli/commands/doctor/doctor-home.ts'
import { ageFindings } from '../../src/cli/commands/doctor/doctor-providers.ts'
import { executable, type Nest } from '../support/cli.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { home } from '../support/turns.ts'

type Finding = { readonly what: string; readonly state: string; readonly says: string; readonly remedy?: readonly string[] }

/** Runs `doctor --json`; returns the findings of these topics. */
async function findings(at: Nest, topics: readonly string[], env: { readonly [name: string]: string } = {}): Promise<Finding[]> {
  const { stdout } = await at.run(['doctor', '--json'], { env, timeoutMs: 30_000 })
  const all: Finding[] = JSON.parse(stdout)
  return all.filter(({ what }) => topics.includes(what))
}

const bad = (all: readonly Finding[]) => all.filter(({ state }) => state === 'bad')

/** The findings as `doctor` prints them, remedies included. */
const words = (all: readonly Finding[]) => all.map(({ state, says, remedy = [] }) => [state, says, ...remedy].join('\n')).join('\n')

const http = (lines: string) => `\n[channels.http]\nenabled = true\nport = 0\n${lines}`

/** -1 days: it expired yesterday. */
function certificate(at: Nest, name: string, days: number): { readonly cert: string; readonly key: string } {
  const [request, cert, key] = ['csr', 'pem', 'key'].map((end) => join(at.dir, `${name}.${end}`))
  if (!request || !cert || !key) throw new Error('no names')
  for (const words of [
    ['req', '-new', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-keyout', key, '-out', request],
    ['x509', '-req', '-in', request, '-signkey', key, '-days', String(days), '-out', cert],
  ]) {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', ...words], { env: { PATH: process.env.PATH ?? '' } })
    if (exitCode !== 0) throw new Error(stderr.toString())
  }
  return { cert, key }
}

test('a gateway that nobody switched on is no topic; without a service that is said', async () => {
  using at = home()
  expect(await findings(at, ['gateway', 'tokens', 'dashboard', 'schedules', 'traces', 'cost'])).toEqual([])
  expect(words(await findings(at, ['service']))).toBe(
    'note\nnot installed\nto keep a server running: braidclaw service install (docs/service.md)',
  )
})

test('gateway: a free port, our own server, another program', async () => {
  using at = home()
  await using server = await gateway(at)
  at.config((await Bun.file(join(at.home, '.braidclaw/config.toml')).text()) + http('').replace('port = 0', `port = ${server.port}`))
  expect(words(await findings(at, ['gateway']))).toMatch(/^ok\nour server answers at http:\/\/127\.0\.0\.1:\d+ \(version /)
  await server.stop()
  expect(words(await findings(at, ['gateway']))).toBe(`ok\nhttp://127.0.0.1:${server.port} is free; no server runs there now`)
  using other = Bun.serve({ hostname: '127.0.0.1', port: server.port, fetch: () => new Response('hello') })
  expect(words(await findings(at, ['gateway']))).toBe(
    `bad\nanother program listens at http://127.0.0.1:${other.port}\nstop it, or choose another port: [channels.http] port = …\nfor the service: braidclaw service install --port PORT`,
  )
}, 120_000)

test('gateway: an address that others reach needs a token and TLS', async () => {
  using at = home(http('host = "0.0.0.0"\n'))
  const found = bad(await findings(at, ['gateway', 'tokens']))
  expect(words(found)).toBe(
    [
      'bad\nnobody has a token, so the server does not start on 0.0.0.0\nmake one: braidclaw token new me --scope admin',
      'bad\nchannels.http.host = "0.0.0.0" without TLS: tokens and answers can be read on the way by whoever is on that network',
      'name a certificate: [channels.http] tls_cert = … and tls_key = …',
      'or listen on 127.0.0.1 behind a proxy that speaks HTTPS, with its name in allowed_hosts',
    ].join('\n'),
  )
})

test.if(needs('openssl'))(
  'gateway: certificates that cannot be read, do not fit their key, or have expired',
  async () => {
    using at = home()
    const [good, other, old] = [certificate(at, 'good', 30), certificate(at, 'other', 5), certificate(at, 'old', -1)]
    const config = await Bun.file(join(at.home, '.braidclaw/config.toml')).text()
    const told = async (cert: string, key: string) => {
      at.config(config + http(`tls_cert = "${cert}"\ntls_key = "${key}"\n`))
      return words((await findings(at, ['gateway'])).slice(1))
    }
    expect(await told(good.cert, good.key)).toMatch(/^ok\nTLS until \d{4}-\d\d-\d\d: /)
    expect(await told(other.cert, other.key)).toMatch(/^note\nTLS until \d{4}-\d\d-\d\d: .*\nput a new certificate/)
    expect(await told(good.cert, other.key)).toContain(
      `bad\nchannels.http.tls_key: "${other.key}" is not the key of the certificate "${good.cert}"`,
    )
    const expired = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    expect(await told(old.cert, old.key)).toBe(
      `bad\nthe certificate ${old.cert} expired on ${expired}\nput a new certificate and its key into the two files\nthen restart the server: braidclaw service restart`,
    )
    expect(await told(join(at.dir, 'none.pem'), good.key)).toContain(`none.pem" cannot be read`)
    expect(await told(good.key, good.key)).toContain(`bad\nchannels.http.tls_cert: "${good.key}" cannot be used`)
    expect(await told(good.cert, good.cert)).toContain('a pair to try with: openssl req -x509')
    at.config(config + http(`tls_cert = "${good.cert}"\n`))
    expect(words(await findings(at, ['gateway']))).toContain('bad\nchannels.http: tls_cert and tls_key belong together')
  },
  120_000,
)

test('gateway: an installed service is judged by the address of its own command line', async () => {
  using at = home()
  const env = fakeSystemd(at, {})
  await at.run(['service', 'install', '--port', '4999', '--host', '0.0.0.0'], { env })
  const found = words(bad(await findings(at, ['gateway', 'tokens'], env)))
  expect(found).toContain('so the server does not start on 0.0.0.0')
  expect(found).toContain('host = "0.0.0.0" without TLS')
})

test('gateway: names that no client ever sends', async () => {
  using at = home(http('allowed_hosts = ["agent.example.org", "[::1]:8443", "https://a.example", "*.example.org"]\n'))
  expect(words(bad(await findings(at, ['gateway'])))).toBe(
    'bad\nchannels.http.allowed_hosts: "https://a.example", "*.example.org" can never be the name that a client sends\nwrite the bare name, with the port if people type one: "agent.example.org", "agent.example.org:8443"; no "*", no "https://"',
  )
})

test('tokens: none, some of them revoked, and a file that others may read', async () => {
  using at = home(http(''))
  expect(words(await findings(at, ['tokens']))).toBe(
    'bad\nnobody has a token, so every request is refused\nmake one: braidclaw token new me --scope admin',
  )
  await tokenOf(at, 'me', '--scope', 'admin')
  await tokenOf(at, 'bot')
  await tokenOf(at, 'gone', '--scope', 'admin')
  await at.run(['token', 'revoke', 'gone'])
  expect(words(await findings(at, ['tokens']))).toStartWith('ok\n2 tokens in force, 1 with scope admin\nrevoke what nobody uses: ')
  const file = join(at.dir, 'token')
  writeFileSync(file, 'x'.repeat(30))
  chmodSync(file, 0o644)
  at.config(`${await Bun.file(join(at.home, '.braidclaw/config.toml')).text()}token_file = "${file}"\n`)
  expect(words(await findings(at, ['tokens']))).toContain(`bad\nchannels.http.token_file: the token file "${file}" can be read by others`)
})

test('schedules: nobody runs them, one is overdue, one was paused after failures, one has no channel and no folder', async () => {
  using at = home()
  const add = async (...flags: string[]) => {
    const { code, stderr } = await at.run(['schedule', 'add', ...flags, '-m', 'go'])
    expect([code, stderr.includes('error')]).toEqual([0, false])
  }
  await add('daily', '--cron', '0 9 * * *')
  expect(words(await findings(at, ['schedules']))).toStartWith(
    'note\n1 schedule, 1 active; no process runs them now\nkeep a server running: ',
  )
  await add('soon', '--at', 'in 1s')
  await add('sick', '--every', '1h')
  await add('lost', '--every', '1h', '--channel', 'fifo', '--to', 'me')
  const change = (sql: string) => {
    using database = new Database(join(at.home, '.braidclaw/memory.sqlite'))
    database.run(sql)
  }
  change(`UPDATE schedules SET state = 'paused', why = '3 runs in a row failed', failures = 3 WHERE name = 'sick'`)
  change(`UPDATE schedules SET channel = 'pigeon', workspace = '/nonexistent/folder' WHERE name = 'lost'`)
  await Bun.sleep(1_100)
  const found = words(bad(await findings(at, ['schedules'])))
  expect(found).toContain('bad\noverdue, and no process runs them: soon\nkeep a server running: braidclaw service install')
  expect(found).toContain(
    'bad\n"sick" is paused: 3 runs in a row failed\nsee why: braidclaw schedule show sick\nthen: braidclaw schedule resume sick',
  )
  expect(found).toContain('bad\n"lost" sends its answers to the channel "pigeon", which does not exist\nthere are: ')
  expect(found).toContain('bad\n"lost" works in /nonexistent/folder, which does not exist\nmkdir -p /nonexistent/folder')
  change(`UPDATE schedules SET channel = 'discord' WHERE name = 'lost'`)
  expect(words(await findings(at, ['schedules']))).toContain('"discord", which is off\nswitch it on: [channels.discord] enabled = true')
}, 120_000)

test('schedules: while a server runs they are served', async () => {
  using at = home()
  await at.run(['schedule', 'add', 'daily', '--cron', '0 9 * * *', '-m', 'go'])
  await using _ = await gateway(at)
  expect(words(await findings(at, ['schedules']))).toBe('ok\n1 schedule, 1 active; a process runs them')
}, 120_000)

test('cost: a limit of money without known prices, and a broken models.toml', async () => {
  const own = '\n[providers.models.own]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "tiny"\n'
  const answering = { BRAIDCLAW_PROVIDER: 'own', BRAIDCLAW_MODEL: 'tiny' }
  using at = home(`${own}`)
  expect(await findings(at, ['cost'], answering)).toEqual([])
  const config = await Bun.file(join(at.home, '.braidclaw/config.toml')).text()
  const limited = (lines: string) =>
    at.config(config.includes('[limits]') ? config.replace('[limits]\n', `[limits]\n${lines}`) : `${config}\n[limits]\n${lines}`)
  limited('daily_usd = 1.0\n')
  expect(words(await findings(at, ['cost'], answering))).toBe(
    'bad\nthe prices of own/tiny are not known, so limits.daily_usd cannot hold\n[providers.models.own] price_input = … and price_output = … (US dollars per million tokens; 0 when it costs nothing)\nor list the model in models.toml (docs/cost.md)',
  )
  limited('daily_usd = 1.0\ndaily_tokens = 1000\n')
  expect(words(await findings(at, ['cost'], answering))).toStartWith('note\nthe prices of own/tiny are not known')
  at.config(
    `${(await Bun.file(join(at.home, '.braidclaw/config.toml')).text()).replace('model = "tiny"\n', 'model = "tiny"\nprice_input = 1\nprice_output = 2\n')}`,
  )
  expect(await findings(at, ['cost'], answering)).toEqual([])
  writeFileSync(join(at.home, '.braidclaw/models.toml'), '[own\n')
  expect(words(await findings(at, ['cost'], answering))).toMatch(/^bad\n.*models\.toml.*\ncorrect models\.toml/s)
})

test('cost: facts that are older than a year', () => {
  const fact = (date: string) => ({ value: 1, origin: { name: 'the table', date } })
  const known = { contextTokens: fact('2026-10-01'), maxOutputTokens: undefined, prices: undefined, sees: undefined, reasons: undefined }
  expect(ageFindings('m', known, Date.parse('2027-09-30'))).toEqual([])
  expect(words([...ageFindings('m', known, Date.parse('2027-10-03'))])).toBe(
    'note\nwhat is known of m is of 2026-10-01, over a year ago; its prices may have changed\nupdate BraidClaw, or write the facts of today into models.toml (docs/cost.md)',
  )
})

test('traces: no URL, nobody there, somebody who refuses, a collector', async () => {
  using at = home()
  const told = async (endpoint: string) => words(await findings(at, ['traces'], { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }))
  const remedy = 'set OTEL_EXPORTER_OTLP_ENDPOINT to the HTTP address of your collector, such as http://127.0.0.1:4318, or unset it'
  expect(await told('collector:4318')).toBe(`bad\nno trace arrives: "collector:4318/v1/traces" is not an HTTP URL\n${remedy}`)
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => (url.endsWith('/ok/v1/traces') ? Response.json({}) : new Response('', { status: 404 })),
  })
  const base = `http://127.0.0.1:${server.port}`
  expect(await told(base)).toBe(`bad\nno trace arrives: what answers at ${base}/v1/traces refuses traces (status 404)\n${remedy}`)
  expect(await told(`${base}/ok`)).toBe(`ok\na collector answers at ${base}/ok/v1/traces`)
  await server.stop(true)
  expect(await told(base)).toContain(`bad\nno trace arrives: nothing answers at ${base}/v1/traces (`)
})

/** A service manager that says what it is told to; it keeps nothing running. */
function fakeSystemd(at: Nest, { state = 'active', linger = 'yes' }): { readonly PATH: string } {
  const folder = join(at.dir, 'fake')
  mkdirSync(folder, { recursive: true })
  const program = (name: string, body: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  program('systemctl', `case "$*" in *" show "*) printf 'ActiveState=${state}\\nMainPID=42\\nNRestarts=0\\nExecMainStatus=1\\n' ;; esac`)
  program('loginctl', `echo ${linger}`)
  return { PATH: `${folder}:${at.env.PATH}` }
}

test('service: a unit that somebody else wrote is not overwritten', async () => {
  using at = home()
  const unit = join(at.home, '.config/systemd/user/braidclaw.service')
  mkdirSync(join(unit, '..'), { recursive: true })
  writeFileSync(unit, '[Service]\nExecStart=%h/.local/bin/braidclaw daemon\n')
  const { code, stderr } = await at.run(['service', 'install'], { env: fakeSystemd(at, {}) })
  expect([code, stderr]).toEqual([1, `error: ${unit} is there already, and was not written by "service install"; move it away first\n`])
  expect(await Bun.file(unit).text()).toContain('braidclaw daemon')
})

test('service: not running, another program, lingering off', async () => {
  using at = home()
  const env = fakeSystemd(at, {})
  expect((await at.run(['service', 'install', '--port', '4999'], { env })).code).toBe(0)
  const unit = join(at.home, '.config/systemd/user/braidclaw.service')
  expect(words(await findings(at, ['service'], env))).toBe(`ok\nruns (systemd): ${unit}`)
  expect(words(await findings(at, ['service'], fakeSystemd(at, { linger: 'no' })))).toContain(
    'note\nit ends when you log out, and does not start before you log in\nloginctl enable-linger',
  )
  expect(words(await findings(at, ['service'], fakeSystemd(at, { state: 'failed' })))).toBe(
    'bad\ninstalled (systemd) and not running: it failed with exit code 1; see "service logs"\nbraidclaw service start\nbraidclaw service logs',
  )
  fakeSystemd(at, {})
  writeFileSync(unit, (await Bun.file(unit).text()).replace(executable, '/opt/old/braidclaw'))
  expect(words(bad(await findings(at, ['service'], env)))).toBe(
    `bad\nthe service runs /opt/old/braidclaw, which does not exist; this program is ${executable}\nbraidclaw service install, with the flags you want, then braidclaw service restart`,
  )
}, 120_000)

test('disk: little space is said, and too little is a fault', () => {
  const MIB = 2 ** 20
  expect(diskFindings('/h', 5_000 * MIB)).toEqual([{ what: 'disk', state: 'ok', says: '5,000 MiB are free for /h' }])
  expect(words([...diskFindings('/h', 999 * MIB)])).toStartWith(
    'note\n999 MiB are free for /h\nforget old conversations: braidclaw home prune',
  )
  expect(words([...diskFindings('/h', 99 * MIB)])).toStartWith('bad\n99 MiB are free for /h; on a full disk no turn begins\n')
})

test('dashboard: files that cannot be built, and a page that is missing', async () => {
  const failing = () => Promise.reject(new Error('the dashboard cannot be built: no preact\nmore'))
  const remedy = 'install BraidClaw again with its packages: npm ci'
  expect(words(await dashboardFindings(failing))).toBe(`bad\nthe page cannot be shown: the dashboard cannot be built: no preact\n${remedy}`)
  expect(words(await dashboardFindings(async () => new Map()))).toBe(`bad\nthe page cannot be shown: it has no first page\n${remedy}`)
  using at = home(http(''))
  expect(words(await findings(at, ['dashboard']))).toMatch(/^ok\n\d+ files, \d+ KiB compressed$/)
})

test('a damaged database does not hide the other findings', async () => {
  using at = home(http(''))
  await tokenOf(at, 'me')
  writeFileSync(join(at.home, '.braidclaw/memory.sqlite'), 'no database at all, but long enough to be looked at')
  const found = await findings(at, ['memory', 'service', 'tokens', 'estop'])
  expect(found.map(({ what, state }) => [what, state])).toEqual([
    ['memory', 'bad'],
    ['service', 'note'],
    ['tokens', 'bad'],
    ['estop', 'ok'],
  ])
})
