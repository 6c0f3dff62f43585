/** The page of the dashboard comes from the gateway, without a token, behind the same guards, under a strict policy. */

import { expect, test } from 'bun:test'
import { gateway } from '../support/gateway.ts'
import { home } from '../support/turns.ts'

test('the page and each file that it names are served, and nothing else is', async () => {
  using at = home()
  await using server = await gateway(at)
  const page = await fetch(`${server.url}/`, { headers: { 'accept-encoding': 'identity' } })
  expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
  expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'; script-src 'self'")
  const names = [...(await page.text()).matchAll(/(?:src|href)="(?:\.?\/)?([^":]+\.(?:js|css|svg))"/g)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(1)
  for (const name of names) {
    const file = await fetch(`${server.url}/${name}`)
    expect([name, file.status, file.headers.get('x-content-type-options')]).toEqual([name, 200, 'nosniff'])
  }
  for (const path of ['/index.html', '/package.json', '/files.ts', '/../package.json', '/%2e%2e/memory.sqlite'])
    expect([path, (await fetch(`${server.url}${path}`)).status]).toEqual([path, 404])
  expect((await fetch(`${server.url}/`, { headers: { host: 'evil.example' } })).status).toBe(403)
})
