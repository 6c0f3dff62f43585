/** Makes and checks the cookie of a browser session. It holds no secret: its seal is made with the digest of the token, so it ends with it. */

export type Session = { readonly id: string; readonly expires: number }

export type Sealing = Session & { readonly digest: string; readonly nonce: string }

/** `id`: of the token; `digest`: its SHA-256, in hex; `expires`: milliseconds since 1970. */
export function sealSession({ id, expires, digest, nonce }: Sealing): string {
  return [id, expires.toString(36), nonce, sealOf({ id, expires, digest, nonce })].join('.')
}

/** @param digestOf returns the digest of the token with that id, while it is in force */
export function openSession(cookie: string, digestOf: (id: string) => string | undefined, now: number): Session | undefined {
  const [id = '', until = '', nonce = '', seal = '', ...more] = cookie.split('.')
  const expires = Number.parseInt(until, 36)
  const digest = digestOf(id)
  if (digest === undefined || more.length > 0 || !Number.isSafeInteger(expires) || expires <= now) return undefined
  const [given, right] = [Buffer.from(seal), Buffer.from(sealOf({ id, expires, digest, nonce }))]
  return given.length === right.length && crypto.timingSafeEqual(given, right) ? { id, expires } : undefined
}

function sealOf({ id, expires, digest, nonce }: Sealing): string {
  return new Bun.CryptoHasher('sha256', digest).update(`session ${id} ${expires} ${nonce}`).digest('hex')
}

export type CookieOptions = { readonly name: string; readonly secure: boolean }

/** How long a session lasts. */
export const sessionSeconds = 7 * 86_400

/** Returns the Set-Cookie header of a new session. */
export function beginSession(session: Omit<Sealing, 'nonce'>, options: CookieOptions): string {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('base64url')
  return setCookie(sealSession({ ...session, nonce }), { ...options, maxAgeS: sessionSeconds })
}

/** Returns the Set-Cookie header that takes the cookie away. */
export function endSession(options: CookieOptions): string {
  return setCookie('', { ...options, maxAgeS: 0 })
}

/** Sent only to this server, never to a script of the page, and never with a request that another site began. */
function setCookie(value: string, { name, secure, maxAgeS }: CookieOptions & { readonly maxAgeS: number }): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure ? '; Secure' : ''}`
}
