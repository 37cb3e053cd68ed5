// The certified provider, on loopback: node provider.mjs PORT SERVER_URL. Each start has new keys.
import { createRequire } from "node:module";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const [port, server] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

const key = (type, options, alg) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
  kid: randomUUID(), use: "sig", alg,
});
const groups = { anna: ["perception"], marta: ["munich"], otto: ["canteen"], ines: ["perception", "admins"] };
const issuer = `http://127.0.0.1:${port}`;
const resource = "https://framesift.example.com/api";

const provider = new Provider(issuer, {
  jwks: { keys: [key("rsa", { modulusLength: 2048 }, "RS256"), key("ec", { namedCurve: "P-256" }, "ES256")] },
  clients: [
    {
      client_id: "framesift", client_secret: "a secret: of /framesift", redirect_uris: [`${server}/login/oidc/callback`],
      post_logout_redirect_uris: [`${server}/login`],
    },
    {
      client_id: "loader", client_secret: "of the loader", redirect_uris: [], response_types: [],
      grant_types: ["client_credentials"],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
  }),
  pkce: { required: () => true },
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_, client) => (client.clientId === "loader" ? resource : undefined),
      getResourceServerInfo: (_, indicator) => ({
        scope: "", audience: indicator, accessTokenFormat: "jwt", accessTokenTTL: 600,
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
  extraTokenClaims: () => ({ groups: ["perception"] }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listens"));
