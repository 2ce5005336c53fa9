// Draws the API's description. Trying things out uses the session one is logged in by.
const docs = document.getElementById("docs");
SwaggerUIBundle({
  url: docs.dataset.schema,
  domNode: docs,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: false,
  supportedSubmitMethods: [],
  validatorUrl: null,
});
