// Shows one of the mock's two documents with Swagger UI; everything comes from the mock itself.
const admin = location.pathname.endsWith("/admin");
const here = document.querySelector(`nav a[href="/_mock/docs${admin ? "/admin" : ""}"]`);
here.setAttribute("aria-current", "page");
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  dom_id: "#document",
  url: admin ? "/_mock/admin.json" : "/_mock/openapi.json",
  deepLinking: true,
  showExtensions: true,
  tryItOutEnabled: true,
  // Otherwise it would ask a service on the Internet.
  validatorUrl: null,
});
